/**
 * Runs commands of this executable in a child process, so that reading a large file for seconds does not delay the requests
 * of the server.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { ownProgram } from '../../net/own-program.ts';
import type { Environment } from '../terminal/terminal.ts';

/** Runs a command with `input` on standard input. Throws OperatorError with its first line of stderr if it fails; `signal` stops it. */
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
    // The child exited before reading its input; its exit code shows why.
  });
  child.stdin.end(input.expose());
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, 'close')]);
  if (code === 0) return;
  const message = said.split('\n')[0]?.replace(/^(?:certificate-)?vault: /, '') ?? '';
  throw new OperatorError(message === '' ? `the child process exited with code ${code}` : message);
}
