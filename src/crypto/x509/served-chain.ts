/** Whether clients would accept the certificates that a server presents. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { rootCertificates } from 'node:tls';
import { formatTimestamp } from '../../base/timestamp.ts';
import { chainFrom } from './certificate-chain.ts';
import { isSelfSigned, isSignedBy, issuerOf, titleOf } from './certificate-facts.ts';

/** CAs with the same name and key identifier, whose keys are tried: a signature takes up to a millisecond. */
const maxIssuers = 8;

/** The certificates that clients trust, by their subject. */
export class Anchors {
  readonly #bySubject: ReadonlyMap<string, readonly X509Certificate[]>;

  constructor(certificates: readonly X509Certificate[]) {
    this.#bySubject = Map.groupBy(certificates, ({ subject }) => subject);
  }

  /** Whether the certificate is one of them, or one of them issued it. */
  accepts(certificate: X509Certificate, now: number): boolean {
    const same = this.#bySubject.get(certificate.subject) ?? [];
    if (same.some(({ raw }) => raw.equals(certificate.raw))) return true;
    const issuers = this.#bySubject.get(certificate.issuer) ?? [];
    return issuers
      .filter((one) => isValidAt(one, now) && certificate.checkIssued(one))
      .slice(0, maxIssuers)
      .some((one) => isSignedBy(certificate, one));
  }
}

let publicOnes: Anchors | undefined;

/** The roots built into Node, which come from Mozilla. */
export function publicAnchors(): Anchors {
  publicOnes ??= new Anchors(rootCertificates.map((pem) => new X509Certificate(pem)));
  return publicOnes;
}

export type ServedChain = {
  readonly certificates: readonly [X509Certificate, ...X509Certificate[]];
  /** Any of them is enough. */
  readonly trusted: readonly Anchors[];
  /** A DNS name or an address. */
  readonly name: string;
  /** The chain of the vault for this leaf; undefined if the vault does not have the leaf. */
  readonly known: readonly X509Certificate[] | undefined;
  /** UTC milliseconds. */
  readonly now: number;
};

export type ServedVerdict = {
  /** Whether the certificates lead to one that clients trust, or to a root. */
  readonly isComplete: boolean;
  /** Why clients reject it, as a clause; undefined if they do not. The expiry of the leaf does not count. */
  readonly problem: string | undefined;
};

/** Judges what a server presents. Name constraints are ignored: CAs keep to theirs. */
export function judgeServed({ certificates, trusted, name, known, now }: ServedChain): ServedVerdict {
  const [leaf, ...others] = certificates;
  const { chain, top } = chainFrom(leaf, others, now);
  const path = [leaf, ...chain, ...(chain.includes(top) || top === leaf ? [] : [top])];
  const at = path.findIndex((one) => trusted.some((anchors) => anchors.accepts(one, now)));
  // The vault may not know the root of a certificate that was imported, but it knows what has to be served.
  const hasAll = known?.every((one) => isSelfSigned(one) || path.some(({ raw }) => raw.equals(one.raw)));
  const isTrusted = at !== -1 || hasAll === true;
  const isComplete = isTrusted || isSelfSigned(top);
  const used = at === -1 ? path : path.slice(0, at + 1);
  const problem =
    nameProblem(leaf, name) ??
    (isTrusted ? undefined : trustProblem(leaf, top)) ??
    used
      .slice(1)
      .map((one) => authorityProblem(one, now))
      .find((found) => found !== undefined) ??
    leafProblem(leaf, now);
  return { isComplete, problem };
}

function nameProblem(leaf: X509Certificate, name: string): string | undefined {
  const covered = isIP(name) === 0 ? leaf.checkHost(name, { subject: 'never' }) : leaf.checkIP(name);
  return covered === undefined ? `the certificate does not cover ${name}` : undefined;
}

function trustProblem(leaf: X509Certificate, top: X509Certificate): string {
  if (top === leaf && isSelfSigned(leaf)) return 'the certificate is self-signed';
  if (isSelfSigned(top)) return `issued by an unknown CA: ${titleOf(top)}`;
  return `incomplete chain or unknown CA: the server does not send the certificate of ${issuerOf(top)}`;
}

function authorityProblem(certificate: X509Certificate, now: number): string | undefined {
  const { validFromDate, validToDate } = certificate;
  if (!certificate.ca) return `${titleOf(certificate)} is in the chain but not a CA`;
  if (now > validToDate.getTime())
    return `${titleOf(certificate)} expired at ${formatTimestamp(validToDate.getTime())}`;
  if (now < validFromDate.getTime()) return `${titleOf(certificate)} is not valid yet`;
  return undefined;
}

/** The extended key usage of TLS servers. */
const serverAuth = '1.3.6.1.5.5.7.3.1';

function leafProblem(leaf: X509Certificate, now: number): string | undefined {
  // Node's types do not know that there may be no such extension.
  const usages = leaf.keyUsage as readonly string[] | undefined;
  if (usages !== undefined && !usages.includes(serverAuth)) return 'the certificate is not for servers';
  const begin = leaf.validFromDate.getTime();
  return now < begin ? `the certificate is not valid before ${formatTimestamp(begin)}` : undefined;
}

function isValidAt({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime();
}
