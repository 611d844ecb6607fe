/** Queries of requests, compiled once: compiling at each call takes longer than SQLite takes to answer. */
import {
  type Compilable,
  CompiledQuery,
  DummyDriver,
  Kysely,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely';
import type { Reader } from './database.ts';
import type { Schema } from './schema/schema.ts';

type Value = string | number | null | Buffer;

/** Builds queries without executing them. */
const builder = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/**
 * A query whose values are its arguments, each once and in order. Each appears as `+?`, which has the same value: for
 * queries with left joins, SQLite would prepare the plan again for each bound `?`, which takes thirty times as long as
 * the result.
 */
export function compiledQuery<Args extends readonly Value[], Row>(
  build: (db: Kysely<Schema>, ...args: Args) => Compilable<Row>,
): (reader: Reader, ...args: Args) => Promise<Row[]> {
  let text: string | undefined;
  return async (reader, ...args) => {
    text ??= textOf(build(builder, ...args), args);
    return (await reader.executeQuery<Row>(CompiledQuery.raw(text, [...args]))).rows;
  };
}

function textOf(query: Compilable<unknown>, args: readonly Value[]): string {
  const { sql, parameters } = query.compile();
  const isInOrder =
    parameters.length === args.length && args.every((arg, index) => arg === parameters[index]);
  if (!isInOrder) throw new Error(`the values of this query are not its arguments: ${sql}`);
  const places = sql.split('?');
  if (places.length !== args.length + 1) throw new Error(`this query has another ? than its values: ${sql}`);
  return places.join('+?');
}
