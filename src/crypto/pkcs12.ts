/**
 * Reads PKCS#12 files (.p12, .pfx; RFC 7292) by node:crypto, and says what to do with those that it cannot read: the
 * password is missing or wrong, or the encryption is of the 1990s.
 */

import type { KeyObject, X509Certificate } from 'node:crypto';
import * as crypto from 'node:crypto';
import { Problem } from '../base/problem.ts';
import { Secret } from '../base/secret.ts';

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

/** OpenSSL writes 2048 rounds, Windows 2000, others up to 600 000. A million takes a tenth of a second. */
const maxRounds = 2_000_000;
const deepest = 24;

/** Whether the bytes begin as a PKCS#12 file does: a sequence whose first member is the version, 3 (RFC 7292 §4). */
export function looksLikePkcs12(bytes: Buffer): boolean {
  const outer = elementAt(bytes, 0);
  return outer?.tag === 0x30 && bytes.subarray(outer.start, outer.start + 3).equals(Buffer.from([2, 1, 3]));
}

/**
 * The certificates and the key of a PKCS#12 file; an undefined password stands for an empty one. Throws
 * `invalid_request` with what to do about it; `name` is what the message calls the file.
 */
export function readPkcs12(
  bytes: Buffer,
  password: Secret<string> | undefined,
  name: string,
): Pkcs12Contents {
  if (hasTooManyRounds(bytes, 0)) {
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

/**
 * Whether the file would keep the process busy for longer than a person waits. Salt and count of rounds stand side by
 * side in every scheme that PKCS#12 uses (RFC 7292 §4 and §B, RFC 8018 §A), so a large INTEGER after an OCTET STRING
 * is enough to know; ciphertext is not looked into.
 */
function hasTooManyRounds(bytes: Buffer, depth: number): boolean {
  let previousTag = 0;
  for (let offset = 0; offset < bytes.length; ) {
    const element = elementAt(bytes, offset);
    if (element === undefined) return false;
    const content = bytes.subarray(element.start, element.end);
    if (element.tag === 0x02 && previousTag === 0x04 && numberIn(content) > maxRounds) return true;
    const nested = (element.tag & 0x20) !== 0 || (element.tag === 0x04 && holdsSequence(content));
    if (nested && depth < deepest && hasTooManyRounds(content, depth + 1)) return true;
    previousTag = element.tag;
    offset = element.end;
  }
  return false;
}

function holdsSequence(content: Buffer): boolean {
  const inner = elementAt(content, 0);
  return inner?.tag === 0x30 && inner.end === content.length;
}

function numberIn(content: Buffer): number {
  if (content.length === 0) return 0;
  return content.length > 6 ? Number.POSITIVE_INFINITY : content.readUIntBE(0, content.length);
}

/** The element of DER at the offset; one of indefinite length (BER, as Java and NSS write it) ends with its parent. */
function elementAt(bytes: Buffer, offset: number): { tag: number; start: number; end: number } | undefined {
  const tag = bytes[offset];
  const first = bytes[offset + 1];
  if (tag === undefined || first === undefined) return undefined;
  const start = offset + 2;
  if (first < 0x80) return { tag, start, end: Math.min(start + first, bytes.length) };
  if (first === 0x80) return { tag, start, end: bytes.length };
  const size = first - 0x80;
  if (size > 4 || start + size > bytes.length) return undefined;
  return {
    tag,
    start: start + size,
    end: Math.min(start + size + bytes.readUIntBE(start, size), bytes.length),
  };
}
