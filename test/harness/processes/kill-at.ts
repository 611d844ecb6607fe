/**
 * Loaded before a program with `--import`: kills it (SIGKILL) just before its KILL_AT-th change to files under the
 * folder KILL_UNDER, counted from 1. With KILL_COMMITS, commits of the database count as changes too; with KILL_NAMES,
 * only changes of names do beside them. A program that exits normally made fewer changes.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import BetterSqlite3 from 'better-sqlite3';
import pg from 'pg';

const { KILL_AT = '', KILL_UNDER = '', KILL_COMMITS, KILL_NAMES } = process.env;
let left = Number(KILL_AT);

/** Functions that change names or content. A kill before an fsync or a close has the same effect as after it. */
const naming = ['linkSync', 'renameSync'];
const changing = [
  ...naming,
  ...['unlinkSync', 'rmSync', 'mkdirSync'],
  ...['openSync', 'writeFileSync', 'appendFileSync', 'createWriteStream'],
];

const functions = fs as unknown as Record<string, (...args: unknown[]) => unknown>;

function change(): void {
  if (--left === 0) process.kill(process.pid, 'SIGKILL');
}

for (const name of KILL_NAMES === undefined ? changing : naming) {
  const original = functions[name];
  if (original === undefined) throw new Error(`node:fs has no ${name}`);
  functions[name] = (...args) => {
    const [path, flags] = args;
    const changes = name !== 'openSync' || flags !== 'r';
    if (changes && String(path).startsWith(KILL_UNDER)) change();
    return original(...args);
  };
}
syncBuiltinESMExports();

if (KILL_COMMITS !== undefined) {
  const prototype = BetterSqlite3.prototype as unknown as {
    prepare: (this: unknown, source: string) => { run: (...args: unknown[]) => unknown };
  };
  const { prepare } = prototype;
  prototype.prepare = function counted(source) {
    const statement = prepare.call(this, source);
    if (source !== 'commit') return statement;
    const { run } = statement;
    statement.run = (...args) => {
      change();
      return run.call(statement, ...args);
    };
    return statement;
  };
  const client = pg.Client.prototype as unknown as { query: (...args: unknown[]) => unknown };
  const { query } = client;
  client.query = function counted(...args) {
    if (args[0] === 'commit') change();
    return query.apply(this, args);
  };
}
