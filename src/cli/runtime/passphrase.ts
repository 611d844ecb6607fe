/** Where a passphrase comes from: a file, standard input, or the terminal; never an argument, which others can see. */
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { readInput } from '../terminal/input-file.ts';
import { Misuse } from '../terminal/misuse.ts';
import { askNewPassword, askPassword } from '../terminal/prompt.ts';
import { type Readings, secretReadings } from '../terminal/secret-text.ts';
import type { Terminal } from '../terminal/terminal.ts';

export const passphraseOption = {
  'passphrase-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'the file that holds the passphrase, - for standard input (default: ask for it)',
  },
} as const;

const ofBackup = 'Passphrase for the master key in the backup: ';

/** A new passphrase, from the file or typed twice. */
export async function readNewPassphrase(
  file: string | undefined,
  terminal: Terminal,
  question = ofBackup,
): Promise<Secret<string>> {
  return (await readings(file, terminal, () => askNewPassword(terminal, question)))[0];
}

/** The passphrase in the file, in each reading that may be the right one, or the one that is typed. */
export function readKnownPassphrase(
  file: string | undefined,
  terminal: Terminal,
): Promise<readonly Secret<string>[]> {
  return readings(file, terminal, () => askPassword(terminal, ofBackup));
}

async function readings(
  file: string | undefined,
  terminal: Terminal,
  ask: () => Promise<Secret<string>>,
): Promise<Readings> {
  if (file === undefined) {
    if (!terminal.stdin.isTTY) {
      throw new Misuse(
        'the passphrase cannot be asked for without a terminal',
        'Give it with --passphrase-file FILE, or --passphrase-file - for standard input.',
      );
    }
    return [await ask()];
  }
  const passphrases = secretReadings(await readInput(file, terminal));
  if (passphrases === undefined) {
    throw new OperatorError(`${file === '-' ? 'standard input' : file} holds no passphrase`, {
      hint: 'Write it there, on one line.',
    });
  }
  return passphrases;
}
