/**
 * All rows of a database, read and written by one code for both engines: in portions by primary key, so that neither
 * the size of a table nor that of its rows matters, with turns for the rest of the process in between.
 */
import { createHash, type Hash } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import type { World } from '../base/world.ts';
import { storedValue } from './engine-sql.ts';
import type { Schema } from './schema/schema.ts';
import { type KeptTable, keptTables, type TableShape } from './schema/table-list.ts';

type Value = string | number | Buffer | null;

type Row = Readonly<Record<string, Value>>;

/** How many rows a table has, and a digest of all of them in order. */
export type TableDigest = { readonly rows: number; readonly digest: string };

export type TableDigests = ReadonlyMap<KeptTable, TableDigest>;

/**
 * Portions grow while rows are short, up to this: of the longest rows, which have a megabyte, that is still little
 * memory.
 */
const maxRows = 64;
const firstRows = 16;
/** They shrink when one exceeds this many bytes. */
const maxBytes = 2 * 1024 * 1024;

/**
 * Replaces all rows of `target` by those of `source`, both in transactions that see one state. Returns digests of what
 * was read. Rows get the same ids; what the target will assign next, the caller sets (`WholeDatabase.setAssignedIds`).
 */
export async function copyRows(
  source: Kysely<Schema>,
  target: Kysely<Schema>,
  world: Pick<World, 'turn'>,
): Promise<TableDigests> {
  await clearRows(target);
  const digests = new Map<KeptTable, TableDigest>();
  // Last come the settings: without the row of the generation, the triggers that move it do nothing.
  const [settings, ...others] = keptTables;
  for (const [name, shape] of [...others, ...(settings === undefined ? [] : [settings])]) {
    const digest = new RowDigest(shape);
    for await (const rows of portionsOf(source, name, shape)) {
      digest.add(rows);
      await insertRows(target, name, shape, rows);
      await world.turn();
    }
    digests.set(name, digest.end());
  }
  return digests;
}

/** Digests of all rows that the reader sees, which must be one state. */
export async function digestRows(reader: Kysely<Schema>, world: Pick<World, 'turn'>): Promise<TableDigests> {
  const digests = new Map<KeptTable, TableDigest>();
  for (const [name, shape] of keptTables) {
    const digest = new RowDigest(shape);
    for await (const rows of portionsOf(reader, name, shape)) {
      digest.add(rows);
      await world.turn();
    }
    digests.set(name, digest.end());
  }
  return digests;
}

/** The tables whose rows are not the same. */
export function differingTables(one: TableDigests, other: TableDigests): string[] {
  // biome-ignore lint/plugin/compared-secrets: digests that are no secrets.
  return [...one.keys()].filter((name) => one.get(name)?.digest !== other.get(name)?.digest);
}

/** Deletes all rows, those first that refer to others. */
async function clearRows(writer: Kysely<Schema>): Promise<void> {
  const [settings, ...others] = keptTables.map(([name]) => name);
  for (const name of [settings, ...others.reverse()]) {
    if (name !== undefined) await sql`delete from ${sql.table(name)}`.execute(writer);
  }
}

async function* portionsOf(
  reader: Kysely<Schema>,
  name: KeptTable,
  { key, columns }: TableShape,
): AsyncGenerator<readonly Row[]> {
  const list = (names: Iterable<string>) => sql.join([...names].map((column) => sql.ref(column)));
  const order = list(key);
  let limit = firstRows;
  let last: Row | undefined;
  for (;;) {
    const after: Row | undefined = last;
    const beyond =
      after === undefined ? sql`` : sql`where (${order}) > (${sql.join(key.map((column) => after[column]))})`;
    const { rows } = await sql<Row>`
      select ${list(columns.keys())} from ${sql.table(name)} ${beyond} order by ${order} limit ${sql.lit(limit)}
    `.execute(reader);
    last = rows.at(-1);
    if (last === undefined) return;
    yield rows;
    if (rows.length < limit) return;
    limit = nextLimit(limit, rows);
  }
}

function nextLimit(limit: number, rows: readonly Row[]): number {
  const bytes = rows.reduce((sum, row) => sum + sizeOf(row), 0);
  if (bytes > maxBytes) return Math.max(1, Math.floor(limit / 4));
  return bytes * 4 < maxBytes ? Math.min(maxRows, limit * 2) : limit;
}

function sizeOf(row: Row): number {
  return Object.values(row).reduce<number>((sum, value) => sum + lengthOf(value), 0);
}

function lengthOf(value: Value): number {
  return typeof value === 'string' || Buffer.isBuffer(value) ? value.length : 8;
}

async function insertRows(
  writer: Kysely<Schema>,
  name: KeptTable,
  { columns }: TableShape,
  rows: readonly Row[],
): Promise<void> {
  const values = rows.map((row) => {
    const list = [...columns].map(([column, kind]) => {
      const value = row[column] ?? null;
      return kind === 'value' && value !== null ? sql`${storedValue(value)}` : sql`${value}`;
    });
    return sql`(${sql.join(list)})`;
  });
  const names = sql.join([...columns.keys()].map((column) => sql.ref(column)));
  await sql`insert into ${sql.table(name)} (${names}) values ${sql.join(values)}`.execute(writer);
}

/** Values are told apart by kind and length: no two tables with different rows have the same digest. */
class RowDigest {
  readonly #columns: readonly string[];
  readonly #hash: Hash = createHash('sha256');
  #rows = 0;

  constructor({ columns }: TableShape) {
    this.#columns = [...columns.keys()];
  }

  add(rows: readonly Row[]): void {
    for (const row of rows) {
      for (const column of this.#columns) this.#addValue(row[column] ?? null);
    }
    this.#rows += rows.length;
  }

  #addValue(value: Value): void {
    const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value));
    const kind = value === null ? 'null' : Buffer.isBuffer(value) ? 'bytes' : typeof value;
    this.#hash.update(`${kind} ${bytes.length}:`).update(bytes);
  }

  end(): TableDigest {
    return { rows: this.#rows, digest: this.#hash.digest('hex') };
  }
}
