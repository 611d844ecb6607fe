/** Where a passphrase comes from: a file, standard input, or the terminal; never an argument, which others can see. */
import { OperatorError } from '../base/operator-error.ts';
import { Secret } from '../base/secret.ts';
import type { Terminal } from './command.ts';
import { readInput } from './input-file.ts';
import { Misuse } from './misuse.ts';
import { askNewPassword, askPassword } from './prompt.ts';

export const passphraseOption = {
  'passphrase-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the file that holds the passphrase, - for standard input (default: ask for it)',
  },
} as const;

/** The passphrase in the file, without the end of its line, or as it is typed; a new one is asked for twice. */
export async function readPassphrase(
  file: string | undefined,
  terminal: Terminal,
  kind: 'new' | 'known',
  question = 'Passphrase for the master key in the backup: ',
): Promise<Secret<string>> {
  if (file === undefined) {
    if (!terminal.stdin.isTTY) {
      throw new Misuse(
        'the passphrase cannot be asked for without a terminal',
        'Give it with --passphrase-file FILE, or --passphrase-file - for standard input.',
      );
    }
    return kind === 'new' ? askNewPassword(terminal, question) : askPassword(terminal, question);
  }
  const passphrase = (await readInput(file, terminal)).toString().replace(/\r?\n$/, '');
  if (passphrase === '') {
    throw new OperatorError(`${file === '-' ? 'standard input' : file} holds no passphrase`, {
      hint: 'Write it there, on one line.',
    });
  }
  return new Secret(passphrase);
}
