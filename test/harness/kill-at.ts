/**
 * Loaded before a program with `--import`: kills it (SIGKILL) just before its KILL_AT-th change to files under the folder
 * KILL_UNDER, counted from 1. With KILL_COMMITS, commits of SQLite count as changes too. A program that exits normally
 * made fewer changes.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import BetterSqlite3 from 'better-sqlite3';

const { KILL_AT = '', KILL_UNDER = '', KILL_COMMITS } = process.env;
let left = Number(KILL_AT);

/** Functions that change names or content. A kill before an fsync or a close has the same effect as after it. */
const changing = [
  ...['linkSync', 'renameSync', 'unlinkSync', 'rmSync', 'mkdirSync'],
  ...['openSync', 'writeFileSync', 'appendFileSync', 'createWriteStream'],
] as const;

const functions = fs as unknown as Record<string, (...args: unknown[]) => unknown>;

function change(): void {
  if (--left === 0) process.kill(process.pid, 'SIGKILL');
}

for (const name of changing) {
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
}
