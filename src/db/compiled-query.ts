/**
 * Queries that requests ask: their text is made once and not at every call, which takes longer than SQLite does to
 * answer.
 */
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

/** Makes queries and asks nobody. */
const builder = new Kysely<Schema>({
  dialect: {
    createAdapter: () => new SqliteAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  },
});

/**
 * A query whose values are its arguments, each once and in their order. Each stands in it as `+?`, which is the same value: of
 * queries that join from the left, SQLite would make the plan anew for each `?` that it is given, which takes thirty times as
 * long as the answer.
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
