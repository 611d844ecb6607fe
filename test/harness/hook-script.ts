/** Hooks for tests: node scripts in the test's folder, so that they run wherever the tests do. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a recording hook was started with. */
export type HookCall = {
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
};

/** A script with this body (CommonJS); the command that runs it. */
export function hookScript(dir: string, body: string, name = 'hook.cjs'): [program: string, script: string] {
  const path = join(dir, name);
  writeFileSync(path, body);
  return [process.execPath, path];
}

/** A script that writes down how it was called, and a way to read that: the calls so far. */
export function recordingHook(dir: string): { readonly command: string[]; readonly calls: () => HookCall[] } {
  const file = join(dir, 'calls.jsonl');
  writeFileSync(file, '');
  const command = hookScript(
    dir,
    `require('node:fs').appendFileSync(${JSON.stringify(file)}, JSON.stringify({
      args: process.argv.slice(2), env: process.env, cwd: process.cwd() }) + '\\n');`,
    'recording.cjs',
  );
  const calls = () =>
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as HookCall);
  return { command, calls };
}
