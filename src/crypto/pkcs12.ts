/**
 * Reads PKCS#12 files (.p12, .pfx; RFC 7292) by node:crypto, and says what to do with those that it cannot read: the
 * password is missing or wrong, or the encryption is of the 1990s.
 */

import type { KeyObject, X509Certificate } from 'node:crypto';
import * as crypto from 'node:crypto';
import { Problem } from '../base/problem.ts';
import { Secret } from '../base/secret.ts';
import { roundsIn } from './pkcs12-rounds.ts';

export type Pkcs12Contents = {
  /** DER; the one that belongs to the key comes first. */
  readonly certificates: readonly Buffer[];
  /** PKCS#8 DER, or undefined where the file has certificates only. Of several keys, OpenSSL reads the first. */
  readonly privateKey: Secret | undefined;
};

type ParsePkcs12 = (
  bundle: Buffer,
  options: { readonly passphrase: string },
) => {
  readonly privateKey: KeyObject | null;
  readonly certificate: X509Certificate | null;
  readonly additionalCertificates: readonly X509Certificate[];
};

// Node 26.10 has it; @types/node does not know it yet.
const { parsePKCS12 } = crypto as unknown as { readonly parsePKCS12: ParsePkcs12 };

/**
 * For all parts of a file together: usually two and a checksum. OpenSSL writes 2048 rounds for each, Windows 2000, others
 * up to 600 000. A million takes up to a second.
 */
const maxRounds = 2_000_000;

/**
 * The certificates and the key of a PKCS#12 file; an undefined password stands for an empty one. Throws
 * `invalid_request` with what to do about it; `name` is what the message calls the file.
 */
export function readPkcs12(
  bytes: Buffer,
  password: Secret<string> | undefined,
  name: string,
): Pkcs12Contents {
  if (roundsIn(bytes) > maxRounds) {
    throw new Problem('invalid_request', {
      detail: `${name} asks for more than ${maxRounds} rounds of password hashing, which no usual PKCS#12 file does.`,
      hint: `Convert it to PEM with ${toPem(name)} and import converted.pem instead.`,
    });
  }
  try {
    const parsed = parsePKCS12(bytes, { passphrase: password?.expose() ?? '' });
    const { privateKey, certificate, additionalCertificates } = parsed;
    return {
      certificates: [certificate, ...additionalCertificates].flatMap((one) =>
        one === null ? [] : [one.raw],
      ),
      privateKey:
        privateKey === null ? undefined : new Secret(privateKey.export({ type: 'pkcs8', format: 'der' })),
    };
  } catch (error) {
    // Not kept as the cause: node shows the passphrase in the message about one that holds a NUL.
    throw unreadable(error, password, name);
  }
}

/** A file's name as an argument of a command in a message: `FILE` where a shell would not take the name as it is. */
export function asArgument(name: string): string {
  return /^[\w/.][\w/.@%+=:,-]*$/.test(name) ? name : 'FILE';
}

function unreadable(error: unknown, password: Secret<string> | undefined, name: string): Problem {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ERR_OSSL_PKCS12_MAC_VERIFY_FAILURE':
    case 'ERR_OSSL_BAD_DECRYPT':
    case 'ERR_INVALID_ARG_VALUE':
      return new Problem('invalid_request', {
        detail: password
          ? `The password does not open the PKCS#12 file ${name}.`
          : `${name} is a PKCS#12 file that opens only with its password.`,
        hint: `Give its password, or convert it to PEM with ${toPem(name)} and import converted.pem instead.`,
      });
    case 'ERR_CRYPTO_UNSUPPORTED_OPERATION':
      return new Problem('invalid_request', {
        detail: `${name} is a PKCS#12 file with encryption that is no longer supported, such as RC2-40.`,
        hint: `Convert it to PEM with ${toPem(name, '-legacy ')} and import converted.pem instead.`,
      });
    default:
      return new Problem('invalid_request', {
        detail: `${name} begins as a PKCS#12 file does, but it is damaged.`,
        hint: 'Export it again, or copy it again from where it came from.',
      });
  }
}

function toPem(name: string, option = ''): string {
  return `\`openssl pkcs12 ${option}-in ${asArgument(name)} -nodes -out converted.pem\``;
}
