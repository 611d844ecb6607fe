/**
 * Reads PKCS#12 files (.p12, .pfx; RFC 7292) with node:crypto, and explains how to fix unreadable ones: the password is
 * missing or wrong, or the encryption is outdated.
 */

import type { KeyObject, X509Certificate } from 'node:crypto';
import * as crypto from 'node:crypto';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';

export type Pkcs12Contents = {
  /** DER; the certificate that belongs to the key comes first. */
  readonly certificates: readonly Buffer[];
  /** PKCS#8 DER, or undefined if the file has only certificates. If there are several keys, OpenSSL reads the first. */
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

// Available in Node 26.10, but not yet in @types/node.
const { parsePKCS12 } = crypto as unknown as { readonly parsePKCS12: ParsePkcs12 };

/** Whether the bytes begin like a PKCS#12 file: a sequence whose first member is version 3 (RFC 7292 §4). */
export function looksLikePkcs12(bytes: Buffer): boolean {
  const [sequence, first = 0] = bytes;
  // The number of length bytes that follow: none for an indefinite or one-byte length.
  const start = 2 + (first > 0x80 ? first - 0x80 : 0);
  return sequence === 0x30 && bytes.subarray(start, start + 3).equals(Buffer.from([2, 1, 3]));
}

/**
 * The certificates and the key of a PKCS#12 file; an undefined password stands for an empty one. Throws
 * `invalid_request` with a fix; messages call the file `name`. The file determines how long this takes, up to hours:
 * read untrusted files with `readBundleApart`.
 */
export function readPkcs12(
  bytes: Buffer,
  password: Secret<string> | undefined,
  name: string,
): Pkcs12Contents {
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
    // Not kept as the cause: Node shows a passphrase that contains a NUL in its message.
    throw unreadable(error, bytes, password, name);
  }
}

/** A file name as a command argument in a message; `FILE` if a shell would need quotes. */
export function asArgument(name: string): string {
  return /^[\w/.][\w/.@%+=:,-]*$/.test(name) ? name : 'FILE';
}

/** Whether no byte of the outer sequence is missing. */
function isWhole(bytes: Buffer): boolean {
  const [, first = 0] = bytes;
  if (first < 0x80) return bytes.length === 2 + first;
  const lengthBytes = first - 0x80;
  // More than six bytes are a length that no file has, and none is the indefinite form.
  if (lengthBytes < 1 || lengthBytes > 6 || bytes.length < 2 + lengthBytes) return false;
  return bytes.length === 2 + lengthBytes + bytes.readUIntBE(2, lengthBytes);
}

function unreadable(
  error: unknown,
  bytes: Buffer,
  password: Secret<string> | undefined,
  name: string,
): Problem {
  const hint = `Enter its password, or convert it to PEM with ${toPem(name)} and import converted.pem instead.`;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  switch (code) {
    case 'ERR_OSSL_PKCS12_MAC_VERIFY_FAILURE':
    case 'ERR_OSSL_BAD_DECRYPT':
    case 'ERR_INVALID_ARG_VALUE':
      return new Problem('invalid_request', {
        detail: password
          ? `The password of the PKCS#12 file ${name} is wrong.`
          : `${name} is a PKCS#12 file that is protected by a password.`,
        hint,
      });
    case 'ERR_CRYPTO_UNSUPPORTED_OPERATION':
      return new Problem('invalid_request', {
        detail: `${name} is a PKCS#12 file with outdated encryption that is not supported, such as RC2-40.`,
        hint: `Convert it to PEM with ${toPem(name, '-legacy ')} and import converted.pem instead.`,
      });
    default:
      // Without a MAC, a wrong password may decrypt to what has the padding of a right one, but not its content.
      if (isWhole(bytes)) {
        return new Problem('invalid_request', {
          detail: password
            ? `The password of the PKCS#12 file ${name} is wrong, or the file is damaged.`
            : `${name} is a PKCS#12 file that is protected by a password, or it is damaged.`,
          hint,
        });
      }
      return new Problem('invalid_request', {
        detail: `${name} looks like a PKCS#12 file, but is damaged.`,
        hint: 'Export the file again, or copy it again from its source.',
      });
  }
}

function toPem(name: string, option = ''): string {
  return `\`openssl pkcs12 ${option}-in ${asArgument(name)} -nodes -out converted.pem\``;
}
