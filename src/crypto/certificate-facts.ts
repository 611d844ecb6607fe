/**
 * What a certificate says about itself, in the words of the API and of messages. Read by node:crypto, which starts at
 * once, where the X.509 library takes a tenth of a second to load.
 */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { type Identifier, parseIdentifier } from '../base/identifier.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { keyTypeOf } from './key-pair.ts';

export type CertificateFacts = {
  /** Upper case hex, as node:crypto and browsers show it. */
  readonly serial: string;
  /** RFC 4514, such as `CN=R3,O=Let's Encrypt,C=US`; empty where the name is. */
  readonly issuer: string;
  readonly subject: string;
  /** DNS names and addresses of the subjectAltName, in order, or the common name where there is no such extension. */
  readonly domains: readonly Identifier[];
  /** As `keyTypeOf` says it, or `unknown`. */
  readonly keyType: string;
  /** Lower case hex without colons. */
  readonly fingerprintSha256: string;
  /** UTC milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Whether it may issue certificates (basicConstraints, RFC 5280 §4.2.1.9). */
  readonly isAuthority: boolean;
  /** Whether it is signed by its own key: a root, or a certificate that nobody vouches for. */
  readonly isSelfSigned: boolean;
};

/** The facts of a DER certificate. Throws a plain error where the bytes are none; `openCertificate` asks first. */
export function certificateFacts(der: Buffer): CertificateFacts {
  const certificate = openCertificate(der);
  if (certificate === undefined) throw new Error('the bytes are not an X.509 certificate');
  return factsOf(certificate);
}

/** The certificate in DER bytes, or undefined where there is none. Bytes that follow it are left behind. */
export function openCertificate(der: Buffer): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    // For times that cannot be read, node's Date objects are invalid or, worse, at random.
    return [certificate.validFrom, certificate.validTo].includes('Bad time value') ? undefined : certificate;
  } catch {
    // OpenSSL's reasons (tags and routines) tell nobody more than that it is no certificate.
    return undefined;
  }
}

/** The facts of an open certificate. */
export function factsOf(certificate: X509Certificate): CertificateFacts {
  const key = publicKeyIn(certificate);
  return {
    serial: certificate.serialNumber,
    issuer: distinguishedName(certificate.issuer),
    subject: distinguishedName(certificate.subject),
    domains: domainsOf(certificate),
    keyType: key === undefined ? 'unknown' : keyTypeOf(key),
    fingerprintSha256: certificate.fingerprint256.replaceAll(':', '').toLowerCase(),
    notBefore: certificate.validFromDate.getTime(),
    notAfter: certificate.validToDate.getTime(),
    isAuthority: certificate.ca,
    isSelfSigned: isSelfSigned(certificate),
  };
}

/** Whether the certificate is signed by its own key. Extensions are not asked: a leaf's may forbid it to sign. */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.issuer === certificate.subject && isSignedBy(certificate, certificate);
}

/** How messages call a certificate: its subject, else its first domain or its number. */
export function titleOf(certificate: X509Certificate): string {
  const { subject, domains, serial } = factsOf(certificate);
  return printable(subject || domains[0] || `the certificate with serial number ${serial}`);
}

/** How messages call the one who issued it. */
export function issuerOf(certificate: X509Certificate): string {
  return printable(distinguishedName(certificate.issuer) || 'an unnamed issuer');
}

/** A sentence where the certificate is expired or not yet valid at `now` (UTC milliseconds), else none. */
export function validityWarnings(certificate: X509Certificate, now: number): string[] {
  const { notBefore, notAfter } = factsOf(certificate);
  if (now > notAfter) return [`${titleOf(certificate)} expired at ${formatTimestamp(notAfter)}.`];
  if (now < notBefore) return [`${titleOf(certificate)} is not valid before ${formatTimestamp(notBefore)}.`];
  return [];
}

/** A name from outside, for a message: nothing in it may move a terminal's cursor or fill its screen. */
export function printable(text: string): string {
  const clean = text.replace(/\p{C}/gu, '?');
  return clean.length > 200 ? `${clean.slice(0, 200)}…` : clean;
}

/** Whether the issuer's key made the certificate's signature. */
export function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  const key = publicKeyIn(issuer);
  return key !== undefined && certificate.verify(key);
}

/** Undefined where OpenSSL does not know the kind of key: such a certificate can still be shown. */
function publicKeyIn(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey;
  } catch {
    return undefined;
  }
}

/**
 * RFC 4514 from node's form: one RDN per line in the order of the encoding, the parts of a multi-valued one joined by
 * ` + `. Values are escaped already, also newlines and plus signs, so that neither separator can be part of one.
 */
function distinguishedName(name: string | undefined): string {
  if (!name) return '';
  const relativeNames = name.split('\n').map((line) => line.split(' + ').join('+'));
  return relativeNames.reverse().join(',');
}

function domainsOf(certificate: X509Certificate): Identifier[] {
  const { subjectAltName } = certificate;
  const texts = subjectAltName === undefined ? commonNames(certificate) : alternativeNames(subjectAltName);
  return [...new Set(texts.map(parseIdentifier).filter((domain) => domain !== undefined))];
}

function commonNames(certificate: X509Certificate): string[] {
  const parts = (certificate.subject ?? '').split(/\n| \+ /);
  return parts.filter((part) => part.startsWith('CN=')).map((part) => part.slice('CN='.length));
}

/**
 * Node's form is `DNS:a, IP Address:b`. A value with a quote, comma or control character is written as a JSON string in
 * which even commas are escaped, so that no name can pretend to be two (CVE-2021-44532) and splitting is safe.
 */
function alternativeNames(text: string): string[] {
  return text.split(', ').flatMap((entry) => {
    const colon = entry.indexOf(':');
    const value = entry.slice(colon + 1);
    if (!['DNS', 'IP Address'].includes(entry.slice(0, colon))) return [];
    return [value.startsWith('"') ? String(JSON.parse(value)) : value];
  });
}
