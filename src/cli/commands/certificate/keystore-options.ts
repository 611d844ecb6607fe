/** Options for the password and the encryption of a keystore. */

import { type KeystoreEncryption, keystoreEncryptions } from '../../../crypto/bundles/pkcs12-writer.ts';
import { keystorePassword } from '../../../crypto/secrets/keystore-password.ts';
import type { Keystore } from '../../../domain/versions/formats.ts';
import { readInput } from '../../terminal/input-file.ts';
import { Misuse } from '../../terminal/misuse.ts';
import { askNewPassword } from '../../terminal/prompt.ts';
import { secretText } from '../../terminal/secret-text.ts';
import type { Terminal } from '../../terminal/terminal.ts';

export const keystoreOptions = {
  'keystore-password-file': {
    type: 'string',
    valueHint: 'FILE',
    description: 'a file with the password of keystore.p12 (default: prompt); - for standard input',
  },
  'keystore-encryption': {
    type: 'string',
    valueHint: 'NAME',
    values: keystoreEncryptions,
    description:
      'of keystore.p12: aes256 (default), or legacy for programs that read only triple DES and SHA-1',
  },
} as const;

/**
 * The keystore of the chosen files, which need a password, may use one or have none; undefined without a password.
 * Throws Misuse if one is missing or superfluous, and `invalid_request` if it is not usable.
 */
export async function keystoreFor(
  args: {
    readonly 'keystore-password-file': string | undefined;
    readonly 'keystore-encryption': string | undefined;
  },
  uses: readonly ('none' | 'required' | 'optional')[],
  terminal: Terminal,
): Promise<Keystore | undefined> {
  const encryption = encryptionIn(args['keystore-encryption']);
  const path = args['keystore-password-file'];
  if (uses.every((use) => use === 'none')) {
    const [given] = Object.entries({ 'keystore-password-file': path, 'keystore-encryption': encryption })
      .filter(([, value]) => value !== undefined)
      .map(([name]) => name);
    if (given === undefined) return undefined;
    throw new Misuse(
      `--${given} needs a file with a keystore`,
      'Add --file keystore.p12 or --file archive.tar.',
    );
  }
  if (path === undefined && !uses.includes('required')) return undefined;
  const text = path === undefined ? await prompted(terminal) : secretText(await readInput(path, terminal));
  return { password: keystorePassword(text.expose()), encryption: encryption ?? 'aes256' };
}

function encryptionIn(name: string | undefined): KeystoreEncryption | undefined {
  if (name === undefined) return undefined;
  const known = keystoreEncryptions.find((one) => one === name);
  if (known !== undefined) return known;
  throw new Misuse(
    `--keystore-encryption: unknown encryption ${JSON.stringify(name)}`,
    `Use one of ${keystoreEncryptions.join(', ')}.`,
  );
}

async function prompted(terminal: Terminal) {
  if (terminal.stdin.isTTY) return askNewPassword(terminal, 'New password of keystore.p12: ');
  throw new Misuse('--keystore-password-file is missing', 'Name a file with the password of keystore.p12.');
}
