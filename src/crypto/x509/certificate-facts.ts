/**
 * The properties of a certificate, in the terms of the API and of messages. Read with node:crypto, because loading the
 * X.509 library takes a tenth of a second.
 */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { type Identifier, parseIdentifier } from '../../base/identifier.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { keyTypeOf } from '../key-pair.ts';

export type CertificateFacts = {
  /** Upper-case hexadecimal, as node:crypto and browsers show it. */
  readonly serial: string;
  /** RFC 4514, such as `CN=R3,O=Let's Encrypt,C=US`; empty if the name is empty. */
  readonly issuer: string;
  readonly subject: string;
  /** DNS names and addresses of the subjectAltName, in order; the common name if there is no such extension. */
  readonly domains: readonly Identifier[];
  /** A result of `keyTypeOf`, or `unknown`. */
  readonly keyType: string;
  /** Lower-case hexadecimal without colons. */
  readonly fingerprintSha256: string;
  /** UTC milliseconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Whether it may issue certificates (basicConstraints, RFC 5280 §4.2.1.9). */
  readonly isAuthority: boolean;
  /** Whether its own key signed it: a root or another self-signed certificate. */
  readonly isSelfSigned: boolean;
};

/** The facts of a DER certificate. Throws a plain error for other bytes; check them with `openCertificate` first. */
export function certificateFacts(der: Buffer): CertificateFacts {
  const certificate = openCertificate(der);
  if (certificate === undefined) throw new Error('the bytes are not an X.509 certificate');
  return factsOf(certificate);
}

/** The certificate in DER bytes, or undefined if there is none. Trailing bytes are ignored. */
export function openCertificate(der: Buffer): X509Certificate | undefined {
  try {
    const certificate = new X509Certificate(der);
    return hasReadableTimes(certificate) ? certificate : undefined;
  } catch {
    // The reasons of OpenSSL (tags and routines) add no useful information.
    return undefined;
  }
}

/** Whether its dates mean anything: for unreadable times, Node's Date objects are invalid or, worse, random. */
export function hasReadableTimes({ validFrom, validTo }: X509Certificate): boolean {
  return ![validFrom, validTo].includes('Bad time value');
}

/** The facts of a parsed certificate. */
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

/**
 * Whether the certificate is signed by its own key. Extensions are ignored, because those of a leaf may forbid it to
 * sign.
 */
export function isSelfSigned(certificate: X509Certificate): boolean {
  return certificate.issuer === certificate.subject && isSignedBy(certificate, certificate);
}

/** The name of a certificate in messages: its subject, else its first domain or its serial number. */
export function titleOf(certificate: X509Certificate): string {
  const { subject, domains, serial } = factsOf(certificate);
  return printable(subject || domains[0] || `the certificate with serial number ${serial}`);
}

/** The name of its issuer in messages. */
export function issuerOf(certificate: X509Certificate): string {
  return printable(distinguishedName(certificate.issuer) || 'an unnamed issuer');
}

/** A warning if the certificate is expired or not yet valid at `now` (UTC milliseconds). */
export function validityWarnings(certificate: X509Certificate, now: number): string[] {
  const { notBefore, notAfter } = factsOf(certificate);
  if (now > notAfter) return [`${titleOf(certificate)} expired at ${formatTimestamp(notAfter)}.`];
  if (now < notBefore) return [`${titleOf(certificate)} is not valid before ${formatTimestamp(notBefore)}.`];
  return [];
}

/** A name from outside, for a message: it must not move the cursor of a terminal or fill its screen. */
export function printable(text: string): string {
  const clean = text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
  return clean.length > 200 ? `${clean.slice(0, 200)}…` : clean;
}

/** Whether the key of the issuer signed the certificate. A key that takes long to verify with signs nothing. */
export function isSignedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  const key = publicKeyIn(issuer);
  return key !== undefined && isQuick(key) && certificate.verify(key);
}

/** In bits. */
const largestModulus = 8192;
/** Most keys have 65537. OpenSSL allows as many bits as the modulus has, which makes one signature take 7 ms. */
const largestExponent = 0xffff_ffffn;

function isQuick({ asymmetricKeyDetails }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = asymmetricKeyDetails ?? {};
  return modulusLength <= largestModulus && publicExponent <= largestExponent;
}

/** Undefined if OpenSSL does not know the key type: such a certificate can still be shown. */
function publicKeyIn(certificate: X509Certificate): KeyObject | undefined {
  try {
    return certificate.publicKey;
  } catch {
    return undefined;
  }
}

/**
 * RFC 4514 from Node's form: one RDN per line in the order of the encoding, the parts of a multi-valued RDN joined with
 * ` + `. Values are already escaped, including newlines and plus signs, so the separators are unambiguous.
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
 * Node's form is `DNS:a, IP Address:b`. A value with a quote, comma or control character is a JSON string in which even
 * commas are escaped, so that no name can pretend to be two (CVE-2021-44532) and splitting is safe.
 */
function alternativeNames(text: string): string[] {
  return text.split(', ').flatMap((entry) => {
    const colon = entry.indexOf(':');
    const value = entry.slice(colon + 1);
    if (!['DNS', 'IP Address'].includes(entry.slice(0, colon))) return [];
    return [value.startsWith('"') ? String(JSON.parse(value)) : value];
  });
}
