/** Asks on the terminal: for passwords, without showing what is typed, and whether something is meant. */

import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { sameBytes } from '../../crypto/constant-time.ts';
import type { Terminal } from './terminal.ts';

const interrupt = '\u0003';
const endOfInput = '\u0004';

/** What was typed up to Enter. Throws OperatorError where ^C or ^D ended it; the terminal is as before either way. */
export async function askPassword(terminal: Terminal, question: string): Promise<Secret<string>> {
  const [password] = await askPasswords(terminal, [question]);
  return password ?? nothingGiven();
}

/** A password that was typed twice in the same way. Throws OperatorError, also where the two differ. */
export async function askNewPassword(terminal: Terminal, question: string): Promise<Secret<string>> {
  const [first, second] = await askPasswords(terminal, [question, 'The same again: ']);
  if (first === undefined || second === undefined) return nothingGiven();
  if (!sameBytes(Buffer.from(first.expose()), Buffer.from(second.expose()))) {
    throw new OperatorError('the two passwords are not the same', { hint: 'Nothing was stored; try again.' });
  }
  return first;
}

/** Whether the answer was y or yes; an end of the input, or `signal`, is no. */
export async function askYes(
  { stdin, stderr }: Terminal,
  question: string,
  signal: AbortSignal,
): Promise<boolean> {
  if (signal.aborted) return false;
  stderr.write(`${question} [y/N] `);
  signal.addEventListener('abort', () => stdin.destroy(), { once: true });
  try {
    for await (const chunk of stdin.setEncoding('utf8') as AsyncIterable<string>) {
      return /^\s*y(es)?\s*$/i.test(chunk);
    }
    return false;
  } catch {
    // The input ended before there was an answer.
    return false;
  } finally {
    stdin.destroy();
  }
}

/** One answer after the other: what is typed ahead belongs to the next question. */
async function askPasswords(
  { stdin, stderr }: Terminal,
  questions: readonly string[],
): Promise<Secret<string>[]> {
  // Before the question: whoever types the moment it stands there must not see their password.
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
        } else if (character === interrupt || character === endOfInput) nothingGiven();
        else if (character === '\b' || character === '\u007f') typed = typed.slice(0, -1);
        else typed += character;
      }
    }
    return nothingGiven();
  } finally {
    stdin.setRawMode(false);
    stdin.destroy();
    stderr.write('\n');
  }
}

function nothingGiven(): never {
  throw new OperatorError('no password was given', { hint: 'Nothing was stored.' });
}
