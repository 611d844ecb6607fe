/** The errors for files that cannot be imported: what is wrong with which file, and how to fix it. */
import type { KeyObject, X509Certificate } from 'node:crypto';
import { Problem } from '../../base/problem.ts';
import { keyTypeOf } from '../key-pair.ts';
import { factsOf, issuerOf, titleOf } from '../x509/certificate-facts.ts';
import { asArgument } from './pkcs12.ts';

/** A certificate and the file that contains it. */
export type Certificate = { readonly x509: X509Certificate; readonly file: string };
/** A private key and the file that contains it. */
export type Key = { readonly key: KeyObject; readonly file: string };
/** A PEM block of another type. */
export type Other = { readonly label: string; readonly file: string };
/** The content of all files; `read` counts certificates including duplicates. */
export type Found = { certificates: Certificate[]; key: Key | undefined; others: Other[]; read: number };

/** A key as messages name it. */
export function nameOf({ key, file }: Key): string {
  return `${keyTypeOf(key)} key in ${file}`;
}

/** The key does not match any certificate. */
export function keyMismatch(key: Key, certificates: readonly Certificate[]): Problem {
  return refusal(
    `The private ${nameOf(key)} does not match any of the certificates: ${listOf(certificates)}.`,
    'Import the key that the certificate was requested with; ' +
      '`openssl pkey -in KEY -pubout` and `openssl x509 -in CERTIFICATE -noout -pubkey` print the same text for a matching pair.',
  );
}

/** The key is that of a CA. */
export function keyOfCa(key: Key, authority: X509Certificate): Problem {
  return refusal(
    `The private key in ${key.file} belongs to a CA certificate (${titleOf(authority)}), not to a server certificate.`,
    'Import the certificate that this CA issued, with its key. If `openssl req -x509` created this one for a server, ' +
      'use --allow-ca (`allow_ca` over HTTP).',
  );
}

/** The warning about a leaf without intermediates. */
export function intermediateMissing(leaf: X509Certificate): string {
  return `The intermediate certificate of ${titleOf(leaf)} is missing: clients that do not know ${issuerOf(leaf)} may not trust it.`;
}

/** None of the other certificates issued the leaf. */
export function issuerMissing(leaf: X509Certificate, others: readonly Certificate[]): Problem {
  const issuer = issuerOf(leaf);
  return refusal(
    `${titleOf(leaf)} was issued by ${issuer}, which is not among the other certificates: ${listOf(others)}.`,
    `Add the certificate of ${issuer} (an intermediate certificate or CA bundle), or import only the certificate and its key.`,
  );
}

/** The files contain no certificate. */
export function noCertificate({ others }: Found, files: string): Problem {
  const request = others.find(({ label }) => label.endsWith('CERTIFICATE REQUEST'));
  if (request === undefined) {
    const hint =
      'Import the certificate with its chain as PEM: blocks that begin with -----BEGIN CERTIFICATE-----.';
    return refusal(`No certificate found in ${files}.`, hint);
  }
  return refusal(
    `${request.file} contains a certificate signing request (CSR), not a certificate.`,
    'Import the certificate that the CA issued for the request.',
  );
}

/** The files contain no readable private key. */
export function noKey({ others }: Found, files: string): Problem {
  const encrypted = others.find(({ label }) => label === 'encrypted');
  if (encrypted !== undefined) {
    const command = `\`openssl pkey -in ${asArgument(encrypted.file)} -out decrypted.key\``;
    return refusal(
      `The private key in ${encrypted.file} is encrypted.`,
      `Decrypt it with ${command}, import decrypted.key instead, and delete that file afterwards.`,
    );
  }
  const instead = others.find(({ label }) => label.endsWith('PUBLIC KEY') || label === 'OPENSSH PRIVATE KEY');
  const hint = 'Import the private key that the certificate was requested with: -----BEGIN PRIVATE KEY-----.';
  if (instead === undefined) return refusal(`No private key found in ${files}.`, hint);
  const kind = instead.label.endsWith('PUBLIC KEY') ? 'a public key' : 'an OpenSSH key';
  return refusal(`${instead.file} contains ${kind}, not the private key of the certificate.`, hint);
}

/** The files contain more than any certificate needs. */
export function tooLarge(detail: string): Problem {
  const hint = 'Import only the certificate, its chain and its private key.';
  return new Problem('payload_too_large', { detail, hint });
}

/** What is wrong and how to fix it. */
export function refusal(detail: string, hint: string): Problem {
  return new Problem('invalid_request', { detail, hint });
}

function listOf(certificates: readonly Certificate[]): string {
  const shown = certificates.slice(0, 5).map((one) => {
    return `${titleOf(one.x509)} (${factsOf(one.x509).keyType}, in ${one.file})`;
  });
  const more = certificates.length - shown.length;
  return shown.join('; ') + (more > 0 ? `; and ${more} more` : '');
}
