/**
 * Commands of this very program as processes of their own: what reads through a large file for seconds must not hold up
 * the requests of a server.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { ownProgram } from '../../net/own-program.ts';
import type { Environment } from '../terminal/terminal.ts';

/** Runs a command to its end, with `input` on its standard input. Throws OperatorError with its complaint where it is refused; `signal` ends it. */
export async function runOwn(
  args: readonly string[],
  environment: Environment,
  signal: AbortSignal,
  input: Secret,
): Promise<void> {
  const { path, script } = ownProgram();
  const child = spawn(path, [...script, ...args], {
    stdio: ['pipe', 'ignore', 'pipe'],
    env: environment,
    signal,
  });
  child.stdin.on('error', () => {
    // It ended before it read that; its exit code says why.
  });
  child.stdin.end(input.expose());
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code === 0) return;
  const message = said.split('\n')[0]?.replace(/^vault: /, '') ?? '';
  throw new OperatorError(message === '' ? `the process for it ended with ${code}` : message);
}
