/** Hooks for tests: Node scripts in the folder of the test. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The arguments, environment and input of a recorded call. */
export type HookCall = {
  readonly args: string[];
  readonly env: Record<string, string>;
  readonly cwd: string;
};

/** Writes a script with this body (CommonJS). Returns the command to run it. */
export function hookScript(dir: string, body: string, name = 'hook.cjs'): [program: string, script: string] {
  const path = join(dir, name);
  writeFileSync(path, body);
  return [process.execPath, path];
}

/** A script that records its calls, and a function to read them. */
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
