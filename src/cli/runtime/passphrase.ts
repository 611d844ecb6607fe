/**
 * Reads a passphrase from a file, standard input or the terminal; never from an argument, which other users can see.
 */
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
    description: 'a file with the passphrase; - for standard input (default: prompt for it)',
  },
} as const;

const backupQuestion = 'Passphrase for the master key in the backup: ';

/** A new passphrase, from the file or typed twice. */
export async function readNewPassphrase(
  file: string | undefined,
  terminal: Terminal,
  question = backupQuestion,
): Promise<Secret<string>> {
  return (await readings(file, terminal, () => askNewPassword(terminal, question)))[0];
}

/** The passphrase from the file, in each possible encoding, or from the prompt. */
export function readKnownPassphrase(
  file: string | undefined,
  terminal: Terminal,
  question = backupQuestion,
): Promise<readonly Secret<string>[]> {
  return readings(file, terminal, () => askPassword(terminal, question));
}

async function readings(
  file: string | undefined,
  terminal: Terminal,
  ask: () => Promise<Secret<string>>,
): Promise<Readings> {
  if (file === undefined) {
    if (!terminal.stdin.isTTY) {
      throw new Misuse(
        'cannot prompt for the passphrase without a terminal',
        'Use --passphrase-file FILE, or --passphrase-file - for standard input.',
      );
    }
    return [await ask()];
  }
  const passphrases = secretReadings(await readInput(file, terminal));
  if (passphrases === undefined) {
    throw new OperatorError(`${file === '-' ? 'standard input' : file} is empty`, {
      hint: 'Write the passphrase to it, on one line.',
    });
  }
  return passphrases;
}
