/** Prompts on the terminal: for passwords, without echo, and for confirmation. */

import { openSync } from 'node:fs';
import { ReadStream } from 'node:tty';
import { OperatorError } from '../../base/operator-error.ts';
import { printableLines } from '../../base/printable-text.ts';
import { Secret } from '../../base/secret.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import type { Terminal } from './terminal.ts';

const interrupt = '\u0003';
const endOfInput = '\u0004';

/** Prompts for a password. Throws OperatorError on ^C or ^D. Restores the terminal mode. */
export async function askPassword(terminal: Terminal, question: string): Promise<Secret<string>> {
  const [password] = await askPasswords(terminal, [question]);
  return password ?? noPassword();
}

/** Prompts for a new password twice. Throws OperatorError if the two differ, and on ^C or ^D. */
export async function askNewPassword(terminal: Terminal, question: string): Promise<Secret<string>> {
  const [first, second] = await askPasswords(terminal, [question, 'Repeat: ']);
  if (first === undefined || second === undefined) return noPassword();
  if (!sameBytes(Buffer.from(first.expose()), Buffer.from(second.expose()))) {
    throw new OperatorError('the passwords do not match', { hint: 'Try again. Nothing was stored.' });
  }
  return first;
}

/** Asks a yes/no question. The end of input and `signal` count as no. */
export async function askYes(
  { stdin: firstInput, stderr }: Terminal,
  question: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return false;
  const stdin = openInput(firstInput);
  stderr.write(`${printableLines(question)} [y/N] `);
  signal.addEventListener('abort', () => stdin.destroy(), { once: true });
  try {
    for await (const chunk of stdin.setEncoding('utf8') as AsyncIterable<string>) {
      return /^\s*y(es)?\s*$/i.test(chunk);
    }
    return false;
  } catch {
    // The input ended without an answer.
    return false;
  } finally {
    stdin.destroy();
  }
}

/** Prompts for several passwords in order; text typed ahead answers the next question. */
async function askPasswords(
  { stdin: firstInput, stderr }: Terminal,
  questions: readonly string[],
): Promise<Secret<string>[]> {
  const stdin = openInput(firstInput);
  // Turn echo off before the question appears, so that fast typing is not shown.
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  const answers: Secret<string>[] = [];
  let typed = '';
  stderr.write(questions[0] ?? '');
  try {
    for await (const chunk of stdin as AsyncIterable<string>) {
      for (const character of chunk) {
        if (character === '\r' || character === '\n') {
          answers.push(new Secret(typed));
          if (answers.length === questions.length) return answers;
          typed = '';
          stderr.write(`\n${questions[answers.length]}`);
        } else if (character === interrupt || character === endOfInput) noPassword();
        else if (character === '\b' || character === '\u007f') typed = typed.slice(0, -1);
        else typed += character;
      }
    }
    return noPassword();
  } finally {
    stdin.setRawMode(false);
    stdin.destroy();
    stderr.write('\n');
  }
}

/** The terminal, opened again if an earlier prompt has closed the input, so that it does not keep the process alive. */
function openInput(stdin: NodeJS.ReadStream): NodeJS.ReadStream {
  return stdin.destroyed ? new ReadStream(openSync('/dev/tty', 'r+')) : stdin;
}

function noPassword(): never {
  throw new OperatorError('no password entered', { hint: 'Nothing was stored.' });
}
