/**
 * Reads what a company's CA sends back for a request of the vault: the certificate of the vault's key, the company's
 * intermediates and its root, in one PEM file in any order. The cost is bounded by the size of the file and by ten
 * certificates.
 */
import { day } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { pemText, readPemBlocks } from '../pem.ts';
import { type AuthorityCertificate, readAuthorityCertificate } from '../x509/authority-certificate.ts';
import { isSignedBy, issuerOf, printable, titleOf } from '../x509/certificate-facts.ts';
import { RequestRefused } from '../x509/request-refused.ts';
import { refusal } from './bundle-refusals.ts';

/** The largest file that is read, in bytes, and the most certificates in it. */
export const maxReturnedFileSize = 65_536;
const maxCertificates = 10;

/** What a certificate must have left to be worth the change. */
const shortestRest = day;

export type ReturnedAuthority = {
  /** The certificate of the vault's key. */
  readonly authority: AuthorityCertificate;
  /** The company's intermediates, upwards. */
  readonly upper: readonly AuthorityCertificate[];
  readonly root: AuthorityCertificate;
  /** When the first of them expires (UTC milliseconds): nothing below is valid for longer. */
  readonly notAfter: number;
};

/**
 * The chain in the file for this key (SPKI DER), which is valid at `now` (UTC milliseconds). Throws `invalid_request`
 * that says what is wrong and what to do.
 */
export function readReturnedAuthority(file: Buffer, publicKey: Buffer, now: number): ReturnedAuthority {
  const certificates = certificatesIn(file);
  const own = certificates.filter((one) => one.publicKey.equals(publicKey));
  if (own.length === 0) {
    throw refusal(
      `None of the certificates in the file has the key of the request: ${listOf(certificates)}.`,
      'Add the certificate that the CA issued for the CSR. "vault ca csr" prints the CSR that is pending; with --new it creates another key, and earlier CSRs are void.',
    );
  }
  const isIssuedBy = issuing(certificates);
  const current = certificates.filter((one) => validityOf(one, now) === undefined);
  // Of several certificates for the key, the last one that the company issued.
  const newest = own.toSorted((a, b) => startOf(b) - startOf(a));
  const path =
    newest.map((one) => pathFrom(one, current, isIssuedBy)).find((found) => found !== undefined) ??
    newest.map((one) => pathFrom(one, certificates, isIssuedBy)).find((found) => found !== undefined);
  if (path === undefined) throw incomplete(newest, certificates, isIssuedBy);
  return checked(path, now);
}

/** Throws like `readReturnedAuthority` if the file cannot be one for any key. */
export function refuseUnfitFile(file: Buffer): void {
  certificatesIn(file);
}

function certificatesIn(file: Buffer): AuthorityCertificate[] {
  if (file.length > maxReturnedFileSize) {
    throw new Problem('payload_too_large', {
      detail: 'The file is larger than 64 KiB.',
      hint: 'Send only the certificate for the CSR, the intermediates of the CA and its root.',
    });
  }
  const blocks = readPemBlocks(pemText(file), 'The file');
  if (blocks.some(({ label }) => label.endsWith('PRIVATE KEY'))) {
    throw refusal(
      'The file contains a private key, which the vault must not get.',
      'Send certificates only. If the key is that of a CA, consider who has seen the file.',
    );
  }
  const found = blocks.filter(({ label }) => /^(X509 |TRUSTED )?CERTIFICATE$/.test(label));
  if (found.length === 0) throw noCertificate(file, blocks[0]?.label);
  if (found.length > maxCertificates) {
    throw refusal(
      `The file has ${found.length} certificates; at most ${maxCertificates} are read.`,
      'Send only the certificate for the CSR, the intermediates of the CA and its root, not a store of all CAs.',
    );
  }
  const distinct = new Map(found.map(({ der }) => [der.toString('base64'), der]));
  return [...distinct.values()].map((der, at) => {
    try {
      return readAuthorityCertificate(der);
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      throw refusal(
        `Certificate ${at + 1} in the file ${error.message}.`,
        'Ask the CA for certificates that current programs accept.',
      );
    }
  });
}

function noCertificate(file: Buffer, label: string | undefined): Problem {
  if (label?.endsWith('CERTIFICATE REQUEST')) {
    return refusal(
      'The file contains a CSR, not the certificate that the CA issued for it.',
      'Send the CSR to the CA of the company, and import what it returns.',
    );
  }
  if (label === 'PKCS7' || label === 'CMS') {
    const command = '`openssl pkcs7 -print_certs -in FILE -out chain.pem`';
    return refusal('The file contains PKCS#7, not PEM certificates.', `Convert it with ${command}.`);
  }
  const isDer = file[0] === 0x30;
  return refusal(
    isDer ? 'The file is DER, not PEM.' : 'No certificate found in the file.',
    isDer
      ? 'Convert it with `openssl x509 -inform der -in FILE` or, for PKCS#7, `openssl pkcs7 -inform der -print_certs -in FILE`, and add the other certificates of the chain.'
      : 'Send the certificate for the CSR with the intermediates and the root of the CA as PEM: blocks that begin with -----BEGIN CERTIFICATE-----.',
  );
}

type IsIssuedBy = (one: AuthorityCertificate, other: AuthorityCertificate) => boolean;

/**
 * Whether names and signature match (RFC 5280 §6.1.3). Each pair is verified once, however many ways lead through it.
 */
function issuing(certificates: readonly AuthorityCertificate[]): IsIssuedBy {
  const known = new Map<string, boolean>();
  return (one, other) => {
    const pair = `${certificates.indexOf(one)} ${certificates.indexOf(other)}`;
    const found = known.get(pair) ?? (one.issuer.equals(other.subject) && isSignedBy(one.x509, other.x509));
    known.set(pair, found);
    return found;
  };
}

/** The shortest way from a certificate to a self-signed one; each certificate is visited once. */
function pathFrom(
  start: AuthorityCertificate,
  certificates: readonly AuthorityCertificate[],
  isIssuedBy: IsIssuedBy,
): AuthorityCertificate[] | undefined {
  if (!certificates.includes(start)) return undefined;
  const ways = [[start]];
  const visited = new Set([start]);
  for (const way of ways) {
    const top = way.at(-1) as AuthorityCertificate;
    if (isIssuedBy(top, top)) return way;
    for (const next of certificates) {
      if (visited.has(next) || !isIssuedBy(top, next)) continue;
      visited.add(next);
      ways.push([...way, next]);
    }
  }
  return undefined;
}

/** What is missing above the certificates that were reached. */
function incomplete(
  own: readonly AuthorityCertificate[],
  certificates: readonly AuthorityCertificate[],
  isIssuedBy: IsIssuedBy,
): Problem {
  let top = own[0] as AuthorityCertificate;
  for (let step = 0; step < certificates.length; step += 1) {
    const next = certificates.find((other) => other !== top && isIssuedBy(top, other));
    if (next === undefined) break;
    top = next;
  }
  const title = titleOf(top.x509);
  const sameName = certificates.find((other) => top.issuer.equals(other.subject));
  if (sameName !== undefined) {
    const whose = sameName === top ? 'its own key' : `the key of ${titleOf(sameName.x509)} in the file`;
    return refusal(
      `The signature of ${title} was not made by ${whose}: a certificate is damaged, or another one of the same name signed it.`,
      'Ask the CA for the chain of exactly this certificate.',
    );
  }
  return refusal(
    `The chain is incomplete: ${title} was issued by ${issuerOf(top.x509)}, which is not in the file.`,
    'Add the certificates of the CA up to its self-signed root; clients of the vault get the root from here.',
  );
}

function checked(path: readonly AuthorityCertificate[], now: number): ReturnedAuthority {
  const [authority] = path;
  const root = path.at(-1);
  if (authority === undefined || root === undefined || authority === root) {
    throw refusal(
      'The certificate for the key of the vault is self-signed.',
      'Send the CSR to the CA of the company, and import what it returns.',
    );
  }
  for (const [below, one] of path.entries()) refuseUnfit(one, below, now);
  if (!authority.signsCrls) {
    throw refusal(
      `${titleOf(authority.x509)} must not sign CRLs (its key usage lacks cRLSign), so nothing could be revoked.`,
      'Ask the CA for a certificate with the key usage of the CSR: keyCertSign and cRLSign.',
    );
  }
  const first = path.toSorted((a, b) => endOf(a) - endOf(b))[0] as AuthorityCertificate;
  const notAfter = endOf(first);
  if (notAfter - now < shortestRest) {
    throw refusal(
      `${titleOf(first.x509)} expires at ${formatTimestamp(notAfter)}, in less than a day; what the vault issues would expire with it.`,
      'Ask the CA for a certificate that is valid for years.',
    );
  }
  return { authority, upper: path.slice(1, -1), root, notAfter };
}

/** A CA certificate with `below` CAs below it in the chain (RFC 5280 §6.1.4). */
function refuseUnfit(one: AuthorityCertificate, below: number, now: number): void {
  const title = titleOf(one.x509);
  const issue = validityOf(one, now);
  if (issue !== undefined) {
    throw refusal(issue, 'Ask the CA for current certificates, and check the clock of this machine.');
  }
  if (!one.isAuthority) {
    throw refusal(
      `${title} is not a CA certificate (basicConstraints without CA:TRUE).`,
      'Ask the CA to issue it for a subordinate CA; servers have other templates.',
    );
  }
  if (!one.signsCertificates) {
    throw refusal(
      `${title} must not sign certificates (its key usage lacks keyCertSign).`,
      'Ask the CA to issue it for a subordinate CA, with keyCertSign and cRLSign.',
    );
  }
  if (one.pathLength !== undefined && one.pathLength < below) {
    const allowed = one.pathLength === 0 ? 'no CA' : `at most ${one.pathLength}`;
    throw refusal(
      `${title} permits ${allowed} below it (pathlen:${one.pathLength}), and the chain has ${below}.`,
      'Ask the company for a certificate from a CA that may issue CAs.',
    );
  }
  if (one.x509.subject === undefined || one.x509.subject === '') {
    throw refusal(`${title} has no subject.`, 'Ask the CA to issue it with the subject of the CSR.');
  }
}

function validityOf({ x509 }: AuthorityCertificate, now: number): string | undefined {
  const { validFromDate, validToDate } = x509;
  if (now >= validToDate.getTime())
    return `${titleOf(x509)} expired at ${formatTimestamp(validToDate.getTime())}.`;
  if (now < validFromDate.getTime())
    return `${titleOf(x509)} is not valid before ${formatTimestamp(validFromDate.getTime())}.`;
  return undefined;
}

function startOf({ x509 }: AuthorityCertificate): number {
  return x509.validFromDate.getTime();
}

function endOf({ x509 }: AuthorityCertificate): number {
  return x509.validToDate.getTime();
}

function listOf(certificates: readonly AuthorityCertificate[]): string {
  return printable(certificates.map(({ x509 }) => titleOf(x509)).join('; '));
}
