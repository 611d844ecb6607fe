/**
 * Runs commands on a real terminal (util-linux's `script`), of a given width, and types the answers to their questions.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { needs } from './missing-program.ts';
import { fromExecutable } from './vault-process.ts';

export const needsTerminal = needs('script');

/** A question, and what is typed once it stands there. */
export type Answer = readonly [question: string, keys: string];

export type TerminalOutcome = {
  /** What stands on the terminal: stdout, stderr and what was typed. */
  readonly said: string;
  readonly code: number;
};

/** Runs `vault` on the vault in `data`, on a terminal with `columns`. */
export async function onTerminal(
  data: string,
  line: string,
  { dialog = [], columns = 80 }: { readonly dialog?: readonly Answer[]; readonly columns?: number } = {},
): Promise<TerminalOutcome> {
  const vault = `${fromExecutable[0]} ${line} --data-dir ${data}`;
  const command = `stty cols ${columns}; ${vault}; echo "code=$?"`;
  const child = spawn('script', ['--quiet', '--command', command, '/dev/null'], {
    env: { ...process.env, SHELL: '/bin/sh' },
  });
  let seen = '';
  let from = 0;
  const waiting = [...dialog];
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    seen += chunk;
    const [next] = waiting;
    const at = next === undefined ? -1 : seen.indexOf(next[0], from);
    if (next === undefined || at === -1) return;
    from = at + next[0].length;
    waiting.shift();
    child.stdin.write(next[1]);
  });
  await once(child, 'close');
  assert.deepEqual(waiting, [], `not asked: ${seen}`);
  const [said = '', code = ''] = seen.replaceAll('\r', '').split('code=');
  return { said, code: Number(code.trim()) };
}
