/**
 * The engine that the vaults of tests have: SQLite, or with VAULT_TEST_ENGINE=postgres a database of their own on a
 * real server for each data directory. Tests of what only files have are skipped there, with the reason.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { realWorld, type World } from '../../../src/base/world.ts';
import { createMasterKey } from '../../../src/crypto/secrets/master-key-file.ts';
import { Database } from '../../../src/db/database.ts';
import { databaseName } from '../../../src/db/sqlite/database-files.ts';
import { type PostgresServer, postgresServer } from '../postgres/postgres.ts';

export const testedEngine = process.env.VAULT_TEST_ENGINE === 'postgres' ? 'postgres' : 'sqlite';

/** Has the databases of the process that started this one, too, where that is a test. */
const variable = 'VAULT_TEST_DATABASES';
const databases = new Map<string, string>(JSON.parse(process.env[variable] ?? '[]'));
const keptDatabases = 16;
let server: PostgresServer | undefined;
let template: Promise<string> | undefined;

/** The URL of the database for a data directory, made at the first call; undefined for the embedded one. */
export async function ensureDatabase(dataDir: string): Promise<string | undefined> {
  if (testedEngine === 'sqlite') return undefined;
  const known = databases.get(dataDir);
  if (known !== undefined) return known;
  server ??= await postgresServer();
  template ??= migratedTemplate(server);
  await dropForgotten(server);
  return keep(dataDir, await server.createDatabase(undefined, { template: await template }));
}

let file: Promise<Buffer> | undefined;

/**
 * Gives the empty directory of a new vault its master key, and its embedded database as migrations leave it: they take
 * half the time of creating a vault, and have tests of their own.
 */
export async function ensureFile(dataDir: string, world: World): Promise<void> {
  if (testedEngine !== 'sqlite') return;
  file ??= migratedFile();
  createMasterKey(join(dataDir, 'master.key'), world);
  writeFileSync(join(dataDir, databaseName), await file, { mode: 0o600, flag: 'wx' });
}

async function migratedFile(): Promise<Buffer> {
  const directory = mkdtempSync(join(tmpdir(), 'vault-test-'));
  const path = join(directory, databaseName);
  await (await Database.open(path, realWorld)).close();
  const content = readFileSync(path);
  rmSync(directory, { recursive: true });
  return content;
}

/** A database with the tables of a vault: to copy it takes half as long as to make them again. */
async function migratedTemplate(on: PostgresServer): Promise<string> {
  const name = 'vault_template';
  const url = await on.createDatabase(name);
  const db = await Database.connect(url, { world: realWorld, environment: {}, directory: tmpdir() });
  await db.close();
  await endConnections(on, name);
  return name;
}

/**
 * Many tests share a process: drops databases whose temporary directory is gone, but for the latest, which may be
 * closing.
 */
async function dropForgotten(on: PostgresServer): Promise<void> {
  for (const [dataDir, url] of [...databases].slice(0, -keptDatabases)) {
    const directory = /^.*?\/vault-test-[^/]+/.exec(dataDir)?.[0];
    if (directory === undefined || existsSync(directory)) continue;
    databases.delete(dataDir);
    await on.dropDatabase(new URL(url).pathname.slice(1));
  }
}

/** A database with connections cannot be copied. Resolves when they are gone. */
async function endConnections(on: PostgresServer, name: string): Promise<void> {
  const others = 'select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = $1';
  await on.query(others, [name]);
}

/**
 * Gives `dataDir` a copy of the database of another, whose connections end; the embedded one is copied as a file, by
 * the caller.
 */
export async function copyDatabase(from: string, dataDir: string): Promise<void> {
  const known = databases.get(from);
  if (known === undefined || server === undefined) return;
  const source = new URL(known).pathname.slice(1);
  await endConnections(server, source);
  keep(dataDir, await server.createDatabase(undefined, { template: source }));
}

function keep(dataDir: string, url: string): string {
  databases.set(dataDir, url);
  process.env[variable] = JSON.stringify([...databases]);
  return url;
}

/** The URL of the database that `ensureDatabase` made; undefined for the embedded one. */
export function databaseOf(dataDir: string): string | undefined {
  return databases.get(dataDir);
}

/** The option of a test of what only a database in a file has. */
export function ofFiles(reason: string): { readonly skip?: string } {
  return testedEngine === 'sqlite' ? {} : { skip: `only of a database in a file: ${reason}` };
}
