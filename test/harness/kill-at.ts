/**
 * Loaded before a program with `--import`: kills it (SIGKILL) just before its so-manieth change to the files under a folder.
 * KILL_AT is the number, counted from 1, KILL_UNDER the folder. Whoever ends by itself made fewer changes.
 */
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';

const { KILL_AT = '', KILL_UNDER = '' } = process.env;
let left = Number(KILL_AT);

/** What changes names or content. To be killed before an fsync or a close leaves the same as after it. */
const changing = [
  ...['linkSync', 'renameSync', 'unlinkSync', 'rmSync', 'mkdirSync'],
  ...['openSync', 'writeFileSync', 'appendFileSync', 'createWriteStream'],
] as const;

const functions = fs as unknown as Record<string, (...args: unknown[]) => unknown>;

for (const name of changing) {
  const original = functions[name];
  if (original === undefined) throw new Error(`node:fs has no ${name}`);
  functions[name] = (...args) => {
    const [path, flags] = args;
    const changes = name !== 'openSync' || flags !== 'r';
    if (changes && String(path).startsWith(KILL_UNDER) && --left === 0) process.kill(process.pid, 'SIGKILL');
    return original(...args);
  };
}
syncBuiltinESMExports();
