/** Asks for a password on the terminal, without showing what is typed. */

import { OperatorError } from '../base/operator-error.ts';
import { Secret } from '../base/secret.ts';
import type { Terminal } from './command.ts';

const interrupt = '\u0003';
const endOfInput = '\u0004';

/** What was typed up to Enter. Throws OperatorError where ^C or ^D ended it; the terminal is as before either way. */
export async function askPassword({ stdin, stderr }: Terminal, question: string): Promise<Secret<string>> {
  // Before the question: whoever types the moment it stands there must not see their password.
  stdin.setRawMode(true);
  stdin.setEncoding('utf8');
  stderr.write(question);
  let typed = '';
  try {
    for await (const chunk of stdin as AsyncIterable<string>) {
      for (const character of chunk) {
        if (character === '\r' || character === '\n') return new Secret(typed);
        if (character === interrupt || character === endOfInput) {
          throw new OperatorError('no password was given', { hint: 'Nothing was stored.' });
        }
        if (character === '\b' || character === '\u007f') typed = typed.slice(0, -1);
        else typed += character;
      }
    }
    throw new OperatorError('no password was given', { hint: 'Nothing was stored.' });
  } finally {
    stdin.setRawMode(false);
    stdin.destroy();
    stderr.write('\n');
  }
}
