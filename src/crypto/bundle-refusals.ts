/** The sentences for people whose files cannot be used as a certificate: what is wrong with which file, and what to do. */
import type { KeyObject, X509Certificate } from 'node:crypto';
import { Problem } from '../base/problem.ts';
import { factsOf, issuerOf, titleOf } from './certificate-facts.ts';
import { keyTypeOf } from './key-pair.ts';
import { asArgument } from './pkcs12.ts';

/** A certificate, and the file it was in. */
export type Certificate = { readonly x509: X509Certificate; readonly file: string };
/** A private key, and the file it was in. */
export type Key = { readonly key: KeyObject; readonly file: string };
/** A block of another kind. */
export type Other = { readonly label: string; readonly file: string };
/** What all files together hold; `read` counts certificates with repetitions. */
export type Found = { certificates: Certificate[]; key: Key | undefined; others: Other[]; read: number };

/** A key as messages call it. */
export function nameOf({ key, file }: Key): string {
  return `${keyTypeOf(key)} key in ${file}`;
}

/** The key fits no certificate. */
export function keyOfNone(key: Key, certificates: readonly Certificate[]): Problem {
  return refusal(
    `The private ${nameOf(key)} does not match any of the certificates: ${listOf(certificates)}.`,
    'Import the key that the certificate was requested with; ' +
      '`openssl pkey -in KEY -pubout` and `openssl x509 -in CERTIFICATE -noout -pubkey` print the same text for a matching pair.',
  );
}

/** The key is a CA's. */
export function keyOfAuthority(key: Key, authority: X509Certificate): Problem {
  return refusal(
    `The private key in ${key.file} belongs to a CA certificate (${titleOf(authority)}), not to a server certificate.`,
    'Import the certificate that this CA issued, with its key. If `openssl req -x509` created this one for a server, ' +
      'create it again with `-addext basicConstraints=critical,CA:FALSE`.',
  );
}

/** The warning about a leaf that came alone. */
export function withoutIntermediate(leaf: X509Certificate): string {
  return `The intermediate certificate of ${titleOf(leaf)} is missing: clients that do not know ${issuerOf(leaf)} may not trust it.`;
}

/** None of the other certificates issued the leaf. */
export function unconnected(leaf: X509Certificate, others: readonly Certificate[]): Problem {
  const issuer = issuerOf(leaf);
  return refusal(
    `${titleOf(leaf)} was issued by ${issuer}, which is not among the other certificates: ${listOf(others)}.`,
    `Add the certificate of ${issuer} (an intermediate certificate or CA bundle), or import only the certificate and its key.`,
  );
}

/** There is no certificate in the files. */
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

/** There is no private key in the files, or none that can be read. */
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

/** More than anybody's certificate takes. */
export function tooLarge(detail: string): Problem {
  const hint = 'Import only the certificate, its chain and its private key.';
  return new Problem('payload_too_large', { detail, hint });
}

/** What is wrong, and what to do. */
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
