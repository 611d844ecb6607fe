/**
 * Checks the certificate that a server presents for a tls-alpn-01 challenge (RFC 8737 §3, for addresses RFC 8738 §6).
 */
import { hash } from 'node:crypto';
import type { Identifier } from '../../base/identifier.ts';
import { DerError, DerReader, derTags } from '../der-reader.ts';
import { isSelfSigned, openCertificate, printable } from './certificate-facts.ts';

const acmeIdentifier = '2b0601050507011f';

/** The first tag after the public key that is not a unique identifier. */
const extensionsTag = 0xa3;

/** What is wrong with the certificate, as a clause; undefined if it answers the challenge. */
export function validationCertificateFault(
  der: Buffer,
  identifier: Identifier,
  keyAuthorization: string,
): string | undefined {
  const certificate = openCertificate(der);
  if (certificate === undefined) return 'is not readable';
  if (!isSelfSigned(certificate)) return 'is not self-signed';
  const names = certificate.subjectAltName ?? '';
  if (!isOnly(names, identifier)) {
    const what = names === '' ? 'no names' : `the names ${printable(names)}`;
    return `has ${what} instead of ${identifier} alone`;
  }
  let found: { readonly isCritical: boolean; readonly content: Buffer }[];
  try {
    found = extensionsWith(der, acmeIdentifier);
  } catch (error) {
    if (error instanceof DerError) return error.message;
    throw error;
  }
  const [extension] = found;
  if (extension === undefined) return 'has no acmeIdentifier extension';
  if (found.length > 1) return 'has several acmeIdentifier extensions';
  if (!extension.isCritical) return 'has an acmeIdentifier extension that is not critical';
  const expected = Buffer.concat([
    Buffer.of(derTags.octetString, 32),
    hash('sha256', keyAuthorization, 'buffer'),
  ]);
  return extension.content.equals(expected) ? undefined : 'is for another key authorization';
}

/** Node's form is `DNS:a, IP Address:b`, and values with a comma are quoted. */
function isOnly(names: string, identifier: Identifier): boolean {
  const lower = names.toLowerCase();
  return lower === `dns:${identifier}` || lower === `ip address:${nodeAddress(identifier)}`;
}

/** OpenSSL writes IPv6 addresses in full, without leading zeros: `2001:DB8:0:0:0:0:0:1`. */
function nodeAddress(identifier: Identifier): string {
  if (!identifier.includes(':')) return identifier;
  const [head = '', tail] = identifier.split('::');
  const before = head === '' ? [] : head.split(':');
  const after = tail === undefined || tail === '' ? [] : tail.split(':');
  const missing = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...new Array<string>(missing).fill('0'), ...after].join(':');
}

/** The extensions with this identifier. Throws DerError. */
function extensionsWith(
  der: Buffer,
  wanted: string,
): { readonly isCritical: boolean; readonly content: Buffer }[] {
  const parts = new DerReader(der).enter(derTags.sequence).enter(derTags.sequence);
  const found: { readonly isCritical: boolean; readonly content: Buffer }[] = [];
  while (!parts.isDone) {
    const { tag, content } = parts.next();
    if (tag !== extensionsTag) continue;
    const list = new DerReader(content).enter(derTags.sequence);
    while (!list.isDone) {
      const extension = list.enter(derTags.sequence);
      const id = extension.take(derTags.objectIdentifier).content.toString('hex');
      const isCritical = extension.nextTag === derTags.boolean && extension.next().content[0] !== 0;
      const value = extension.take(derTags.octetString).content;
      if (id === wanted) found.push({ isCritical, content: value });
    }
  }
  return found;
}
