/**
 * Reads the certificate of a CA that someone else sent, as strictly as verifiers do, in time linear in its bytes: its
 * key and its signature are checked before OpenSSL sees them.
 */
import type { X509Certificate } from 'node:crypto';
import { DerError, DerReader, derTags, dottedIdentifier } from '../der-reader.ts';
import { openCertificate } from './certificate-facts.ts';
import { type ConstrainedNames, constrainedNames } from './constrained-names.ts';
import { refuseWeakKey, refuseWeakSignature } from './request-key.ts';
import { RequestRefused } from './request-refused.ts';

/** For which side of TLS certificates below it may be (extended key usage). */
export type PermittedUsages = { readonly server: boolean; readonly client: boolean };

export type AuthorityCertificate = {
  readonly der: Buffer;
  readonly x509: X509Certificate;
  /** The names as DER. */
  readonly subject: Buffer;
  readonly issuer: Buffer;
  /** SPKI DER. */
  readonly publicKey: Buffer;
  readonly isAuthority: boolean;
  /** How many CAs may follow; undefined for any number. */
  readonly pathLength: number | undefined;
  /** Without the extension, a key may be used for both (RFC 5280 §4.2.1.3). */
  readonly signsCertificates: boolean;
  readonly signsCrls: boolean;
  /** Undefined for any names and any use. */
  readonly constraints: ConstrainedNames | undefined;
  readonly usages: PermittedUsages | undefined;
};

const basicConstraints = '551d13';
const keyUsage = '551d0f';
const extendedKeyUsage = '551d25';
const nameConstraints = '551d1e';
const policyConstraints = '551d24';
/**
 * Of critical extensions, those that are read here, and those of policies, which the certificates of the vault do not
 * have.
 */
const known = new Set([
  ...[basicConstraints, keyUsage, extendedKeyUsage, nameConstraints, policyConstraints],
  ...['551d0e', '551d11', '551d1f', '551d20', '551d21', '551d23', '551d36'],
]);

const serverAuth = '2b06010505070301';
const clientAuth = '2b06010505070302';
const anyUsage = '551d2500';

/** The tags of a TBSCertificate's own parts (RFC 5280 §4.1). */
const versionTag = 0xa0;
const extensionsTag = 0xa3;

/** Throws RequestRefused with a clause such as "is damaged". */
export function readAuthorityCertificate(der: Buffer): AuthorityCertificate {
  try {
    return certificateIn(der);
  } catch (error) {
    if (error instanceof DerError) throw new RequestRefused(`is damaged: its DER ${error.message}`);
    throw error;
  }
}

/** Certificate (RFC 5280 §4.1). */
function certificateIn(der: Buffer): AuthorityCertificate {
  const file = new DerReader(der);
  const certificate = file.enter(derTags.sequence);
  file.end();
  const signed = new DerReader(certificate.take(derTags.sequence).content);
  const algorithm = certificate.take(derTags.sequence).whole;
  certificate.take(derTags.bitString);
  certificate.end();
  if (signed.nextTag === versionTag) signed.next();
  signed.take(derTags.integer);
  signed.take(derTags.sequence);
  const issuer = signed.take(derTags.sequence).whole;
  signed.take(derTags.sequence);
  const subject = signed.take(derTags.sequence).whole;
  const publicKey = signed.take(derTags.sequence).whole;
  const extensions = extensionsIn(signed);
  refuseWeakKey(publicKey);
  refuseWeakSignature(algorithm);
  const x509 = openCertificate(der);
  if (x509 === undefined) throw new RequestRefused('is not an X.509 certificate that OpenSSL can read');
  return { der, x509, subject, issuer, publicKey, ...limitsIn(extensions) };
}

/** The values of the extensions, each once. Throws for a critical one that is unknown. */
function extensionsIn(signed: DerReader): Map<string, Buffer> {
  const found = new Map<string, Buffer>();
  while (!signed.isDone && signed.nextTag !== extensionsTag) signed.next();
  if (signed.isDone) return found;
  const list = signed.enter(extensionsTag).enter(derTags.sequence);
  signed.end();
  while (!list.isDone) {
    const extension = list.enter(derTags.sequence);
    const type = extension.take(derTags.objectIdentifier).content;
    const isCritical = extension.nextTag === derTags.boolean && extension.next().content[0] !== 0;
    const { content } = extension.take(derTags.octetString);
    extension.end();
    const id = type.toString('hex');
    if (found.has(id)) throw new RequestRefused(`has the extension ${dottedIdentifier(type)} twice`);
    if (isCritical && !known.has(id)) {
      throw new RequestRefused(
        `has the critical extension ${dottedIdentifier(type)}, which is not supported`,
      );
    }
    found.set(id, content);
  }
  return found;
}

function limitsIn(extensions: ReadonlyMap<string, Buffer>) {
  const usage = extensions.get(keyUsage);
  const bits = usage === undefined ? 0xff : keyUsages(usage);
  const names = extensions.get(nameConstraints);
  const purposes = extensions.get(extendedKeyUsage);
  const policies = extensions.get(policyConstraints);
  if (policies !== undefined) refuseRequiredPolicies(policies);
  return {
    ...basicsIn(extensions.get(basicConstraints)),
    signsCertificates: (bits & 0x04) !== 0,
    signsCrls: (bits & 0x02) !== 0,
    constraints: names && constrainedNames(names),
    usages: purposes && usagesIn(purposes),
  };
}

/** BasicConstraints (RFC 5280 §4.2.1.9). */
function basicsIn(content: Buffer | undefined): Pick<AuthorityCertificate, 'isAuthority' | 'pathLength'> {
  if (content === undefined) return { isAuthority: false, pathLength: undefined };
  const file = new DerReader(content);
  const basics = file.enter(derTags.sequence);
  file.end();
  const isAuthority = basics.nextTag === derTags.boolean && basics.next().content[0] !== 0;
  const length = basics.isDone ? undefined : basics.take(derTags.integer).content;
  basics.end();
  if ((length?.[0] ?? 0) >= 0x80) throw new DerError('has a negative path length');
  // A number of several bytes is larger than any chain.
  return { isAuthority, pathLength: length?.length === 1 ? length[0] : undefined };
}

/** The first eight bits of a KeyUsage (RFC 5280 §4.2.1.3). */
function keyUsages(content: Buffer): number {
  const file = new DerReader(content);
  const { content: bits } = file.take(derTags.bitString);
  file.end();
  return bits[1] ?? 0;
}

function usagesIn(content: Buffer): PermittedUsages {
  const file = new DerReader(content);
  const list = file.enter(derTags.sequence);
  file.end();
  const found = new Set<string>();
  while (!list.isDone) found.add(list.take(derTags.objectIdentifier).content.toString('hex'));
  const isAny = found.has(anyUsage);
  return { server: isAny || found.has(serverAuth), client: isAny || found.has(clientAuth) };
}

/** PolicyConstraints (RFC 5280 §4.2.1.11): requireExplicitPolicy. */
function refuseRequiredPolicies(content: Buffer): void {
  const file = new DerReader(content);
  const constraints = file.enter(derTags.sequence);
  file.end();
  if (constraints.nextTag !== 0x80) return;
  throw new RequestRefused(
    'requires certificate policies (policyConstraints), which the certificates of the vault do not have',
  );
}
