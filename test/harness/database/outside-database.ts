/**
 * The database of a vault through a connection of the test's own, as another process sees it. A test reads and changes
 * rows there with SQL that both engines know; what they write differently is translated here.
 */
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import type { TestWorld } from '../test-world.ts';
import { OutsideServer } from './outside-server.ts';
import { databaseOf } from './tested-engine.ts';

export type Row = Record<string, unknown>;

/** A statement, in the manner of better-sqlite3. */
export type OutsideStatement = {
  all(...values: unknown[]): unknown[];
  get(...values: unknown[]): unknown;
  run(...values: unknown[]): { readonly changes: number };
  /** Only the first column. */
  pluck(): OutsideStatement;
  /** Rows as arrays. */
  raw(): OutsideStatement;
};

export type OutsideDatabase = {
  prepare(sql: string): OutsideStatement;
  exec(sql: string): unknown;
  close(): unknown;
};

/** Opens the database of the vault in `dataDir`. The caller closes it. */
export function openOutside(dataDir: string): OutsideDatabase {
  const url = databaseOf(dataDir);
  if (url !== undefined) return new OutsideServer(url);
  return new BetterSqlite3(join(dataDir, 'vault.db'), { fileMustExist: true }) as unknown as OutsideDatabase;
}

/** Runs `work` on the database of the vault in `dataDir`, through a connection of its own. */
export function outside<T>(dataDir: string, work: (db: OutsideDatabase) => T): T {
  const db = openOutside(dataDir);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** The same for what only a file has. */
export function outsideFile<T>(dataDir: string, work: (db: BetterSqlite3.Database) => T): T {
  const db = new BetterSqlite3(join(dataDir, 'vault.db'), { fileMustExist: true });
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** The same with references between tables unchecked. */
export function outsideUnchecked<T>(dataDir: string, work: (db: OutsideDatabase) => T): T {
  const url = databaseOf(dataDir);
  if (url === undefined) {
    return outside(dataDir, (db) => {
      db.exec('pragma foreign_keys = off');
      return work(db);
    });
  }
  const db = new OutsideServer(Object.assign(new URL(url), { username: 'postgres' }).href);
  try {
    db.exec('set session_replication_role = replica');
    return work(db);
  } finally {
    db.close();
  }
}

/** Sets a setting, as `storedValue` writes it. */
export function putOutside(dataDir: string, key: string, value: string | number | Buffer): void {
  const sql = `insert into settings (key, value) values (?, ${stored(dataDir, value)})
    on conflict (key) do update set value = excluded.value`;
  outside(dataDir, (db) => db.prepare(sql).run(key, value));
}

/** Makes the caches of the vault read again what another process wrote past it. */
export function moveGeneration(dataDir: string): void {
  const sql = "select value from settings where key = 'generation'";
  const generation = outside(dataDir, (db) => db.prepare(sql).pluck().get());
  putOutside(dataDir, 'generation', Number(generation) + 1);
}

function stored(dataDir: string, value: string | number | Buffer): string {
  if (databaseOf(dataDir) === undefined) return '?';
  if (Buffer.isBuffer(value)) return "jsonb_build_object('bytes', encode(cast(? as bytea), 'hex'))";
  return `to_jsonb(cast(? as ${typeof value === 'number' ? 'bigint' : 'text'}))`;
}

/**
 * Makes each `insert` into, `update` of or `delete` from the table fail, until `allow` is called; with `when`, only of
 * rows for which that condition is true.
 */
export function refuse(
  dataDir: string,
  change: 'insert' | 'update' | 'delete',
  table: string,
  { when = 'true', message = 'disk full' }: { readonly when?: string; readonly message?: string } = {},
): { allow(): void } {
  const isServer = databaseOf(dataDir) !== undefined;
  const trigger = `create trigger refused before ${change} on ${table} for each row when (${when})`;
  outside(dataDir, (db) =>
    db.exec(
      isServer
        ? `create function refused() returns trigger language plpgsql as $$ begin raise exception '${message}'; end $$;
           ${trigger} execute function refused()`
        : `${trigger} begin select raise(abort, '${message}'); end`,
    ),
  );
  const allowing = isServer
    ? `drop trigger refused on ${table}; drop function refused()`
    : 'drop trigger refused';
  return { allow: () => outside(dataDir, (db) => db.exec(allowing)) };
}

/** Keeps every transaction of the vault waiting until `release` is called, as a long one of another process does. */
export function holdLock(dataDir: string): { release(): void } {
  const db = openOutside(dataDir);
  db.exec(
    databaseOf(dataDir) === undefined
      ? 'begin immediate'
      : "begin; select 1 from settings where key = 'generation' for update",
  );
  return closing(db);
}

/** Keeps audit events of requests waiting until `release` is called. */
export function holdLog(dataDir: string): { release(): void } {
  const db = openOutside(dataDir);
  db.exec(
    databaseOf(dataDir) === undefined
      ? 'begin immediate'
      : "begin; select 1 from settings where key = 'audit-mark' for update",
  );
  return closing(db);
}

function closing(db: OutsideDatabase): { release(): void } {
  return {
    release: () => {
      db.exec('rollback');
      db.close();
    },
  };
}

/** A function that tells by what it returns whether anybody has written since it was called last, by any process. */
export function watchWrites(t: Pick<TestContext, 'after'>, dataDir: string): () => unknown {
  const db = openOutside(dataDir);
  t.after(() => db.close());
  const question =
    databaseOf(dataDir) === undefined
      ? 'select data_version from pragma_data_version'
      : // The number that the next transaction that writes will get.
        'select pg_snapshot_xmax(pg_current_snapshot())';
  return () => db.prepare(question).pluck().get();
}

/**
 * Resolves when the vault waits for a lock that another holds: where the database is a file, its clock has to go on
 * then.
 */
export async function lockAwaited({ dataDir, world }: { dataDir: string; world: TestWorld }): Promise<void> {
  if (databaseOf(dataDir) === undefined) return world.sleeping(1);
  const blocked =
    'select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0';
  const db = openOutside(dataDir);
  try {
    while (db.prepare(blocked).pluck().get() === 0) await nextTurn();
  } finally {
    db.close();
  }
}
