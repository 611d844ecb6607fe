/** The files that the issuer commands read: certificates to trust, and the HMAC key of an external account binding. */
import { X509Certificate } from 'node:crypto';
import { OperatorError } from '../../../base/operator-error.ts';
import type { Secret } from '../../../base/secret.ts';
import { encodePem, readPemBlocks } from '../../../crypto/pem.ts';
import { eabKeyIn } from '../../../domain/issuers/issuer-inputs.ts';
import type { IssuerSecrets } from '../../../domain/issuers/issuers.ts';
import type { Arguments } from '../../terminal/arguments.ts';
import { readInput } from '../../terminal/input-file.ts';
import type { Terminal } from '../../terminal/terminal.ts';
import type { caOptions } from './issuer-options.ts';

/** The secrets and the consent that the options give. Throws OperatorError like `readTrust` and `readEabKey`. */
export async function secretsFrom(
  args: Arguments<typeof caOptions>,
  terminal: Terminal,
): Promise<IssuerSecrets> {
  const { 'eab-hmac-key-file': keyFile, 'ca-file': caFile } = args;
  return {
    eabKey: keyFile === undefined ? undefined : await readEabKey(keyFile, terminal),
    ca: caFile === undefined ? undefined : await readTrust(caFile, terminal),
    acceptsTerms: args['accept-terms'],
  };
}

/** The certificates of a PEM file, normalized. Throws OperatorError if it has none, or an invalid one. */
async function readTrust(path: string, terminal: Terminal): Promise<string> {
  const text = (await readInput(path, terminal)).toString('latin1');
  const blocks = readPemBlocks(text, path).filter(({ label }) => label === 'CERTIFICATE');
  if (blocks.length === 0) {
    throw new OperatorError(`no certificate in ${path}`, {
      hint: 'Use PEM blocks that begin with -----BEGIN CERTIFICATE-----.',
    });
  }
  if (!blocks.every(({ der }) => isCertificate(der))) {
    throw new OperatorError(`invalid certificate in ${path}`, {
      hint: 'The file is damaged. Download the PEM file of the root from the CA again.',
    });
  }
  return blocks.map(({ der }) => encodePem('CERTIFICATE', der)).join('');
}

function isCertificate(der: Buffer): boolean {
  try {
    return new X509Certificate(der).raw.equals(der);
  } catch {
    // The message of OpenSSL does not help the operator.
    return false;
  }
}

/** The HMAC key in a file. Throws OperatorError if there is none. */
async function readEabKey(path: string, terminal: Terminal): Promise<Secret> {
  const key = eabKeyIn((await readInput(path, terminal)).toString('latin1'));
  if (key !== undefined) return key;
  throw new OperatorError(`no HMAC key in ${path}`, {
    hint: 'Write the key to the file as the CA shows it: letters, digits, - and _ on one line.',
  });
}
