/** Queries of requests, compiled once: compiling at each call takes longer than SQLite takes to answer. */
import {
  type Compilable,
  type CompiledQuery,
  createQueryId,
  type DialectAdapter,
  type Expression,
  type Kysely,
  NOOP_QUERY_EXECUTOR,
  QueryCreator,
  type QueryResult,
  type RootOperationNode,
} from 'kysely';
import { steadyValue } from './engine-sql.ts';
import type { Schema } from './schema/schema.ts';

/** A value of a query. */
export type Value = string | number | null | Buffer;

/** Executes compiled queries: a Kysely, or what is quicker than one. */
export type QueryRunner = Pick<Kysely<Schema>, 'getExecutor'> & {
  readonly executeQuery: <Row>(query: CompiledQuery<Row>) => Promise<QueryResult<Row>>;
};

/** Builds queries without compiling or executing them. */
export type Builder = QueryCreator<Schema>;

type Bound<Args extends readonly Value[]> = { readonly [Index in keyof Args]: Expression<Args[Index]> };

/** What is built: `toOperationNode` has its syntax tree. */
type Built<Row> = Compilable<Row> & { toOperationNode(): RootOperationNode };

/**
 * A query whose values are its arguments, each once and in order. It is compiled once per connection, by the compiler
 * of its engine.
 */
export function compiledQuery<Args extends readonly Value[], Row>(
  build: (db: Builder, ...args: Bound<Args>) => Built<Row>,
): (reader: QueryRunner, ...args: Args) => Promise<Row[]> {
  const compiled = new WeakMap<DialectAdapter, CompiledQuery<Row>>();
  return async (reader, ...parameters) => {
    const { adapter } = reader.getExecutor();
    let query = compiled.get(adapter);
    if (query === undefined) {
      query = compile(reader, build, parameters.length);
      compiled.set(adapter, query);
    }
    return (await reader.executeQuery<Row>({ ...query, parameters })).rows;
  };
}

function compile<Args extends readonly Value[], Row>(
  reader: QueryRunner,
  build: (db: Builder, ...args: Bound<Args>) => Built<Row>,
  count: number,
): CompiledQuery<Row> {
  const marks = Array.from({ length: count }, () => Symbol('argument'));
  const db: Builder = new QueryCreator({ executor: NOOP_QUERY_EXECUTOR });
  const built = build(db, ...(marks.map(steadyValue) as unknown as Bound<Args>));
  const query = reader.getExecutor().compileQuery<Row>(built.toOperationNode(), createQueryId());
  const isInOrder =
    query.parameters.length === count && marks.every((mark, index) => mark === query.parameters[index]);
  if (!isInOrder) throw new Error(`the values of this query are not its arguments: ${query.sql}`);
  return query;
}
