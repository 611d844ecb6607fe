/** Issues the certificates of a private CA's authorities: roots and intermediates (RFC 5280). */
import { X509Certificate } from 'node:crypto';
import type { Extension } from '@peculiar/x509';
import type { Secret } from '../../base/secret.ts';
import { keyObject, publicKeyOf } from '../key-pair.ts';
import { nameConstraints, nameConstraintsOid, type PermittedNames } from './name-constraints.ts';
import {
  nameOf,
  sign,
  wholeSeconds,
  type X509Draft,
  type X509Library,
  type X509Terms,
  x509Library,
} from './x509-library.ts';

/** A CA certificate (DER) and its PKCS#8 private key. */
export type X509Issuer = { readonly certificate: Buffer; readonly privateKey: Secret };

/** What a CA certificate allows below it. */
export type AuthorityLimits = {
  /** How many CAs may follow this one in a chain; by default 1 after a root and none after an intermediate. */
  readonly pathLength?: number | undefined;
  /** By default any name. */
  readonly permitted?: PermittedNames | undefined;
};

export type RootRequest = X509Terms &
  AuthorityLimits & { readonly commonName: string; readonly privateKey: Secret };

export type IntermediateRequest = X509Terms &
  AuthorityLimits & {
    readonly commonName: string;
    /** SPKI DER. */
    readonly publicKey: Buffer;
    readonly issuer: X509Issuer;
  };

/** A self-signed root (DER) that may sign intermediates and, through them, leaves (RFC 5280 §4.2.1.9). */
export async function issueRoot(request: RootRequest): Promise<Buffer> {
  const { commonName, privateKey, pathLength = 1, permitted, ...terms } = request;
  const x509 = await x509Library();
  const publicKey = publicKeyOf(privateKey);
  const subject = nameOf(x509, commonName);
  const extensions = await authorityExtensions(x509, publicKey, { pathLength, permitted });
  return sign(x509, { ...terms, subject, publicKey, extensions }, subject, privateKey);
}

/**
 * An intermediate (DER) that may sign only leaves, unless its path length is given. Throws a plain error if it would
 * outlive its issuer, or if the issuer's key does not match its certificate.
 */
export async function issueIntermediate(request: IntermediateRequest): Promise<Buffer> {
  const { commonName, publicKey, issuer, pathLength = 0, permitted, ...terms } = request;
  const x509 = await x509Library();
  const extensions = await authorityExtensions(x509, publicKey, { pathLength, permitted });
  return signAs(x509, issuer, { ...terms, subject: nameOf(x509, commonName), publicKey, extensions });
}

export type CrossRequest = X509Terms &
  AuthorityLimits & {
    /** The root that gets another certificate (DER), with its name and key. */
    readonly root: Buffer;
    readonly issuer: X509Issuer;
  };

/**
 * The certificate (DER) of a root by another root, for clients that trust only that one. Throws like
 * `issueIntermediate`.
 */
export async function issueCrossCertificate(request: CrossRequest): Promise<Buffer> {
  const { root, issuer, pathLength, permitted, ...terms } = request;
  const x509 = await x509Library();
  const { subjectName: subject, publicKey } = new x509.X509Certificate(root);
  const key = Buffer.from(publicKey.rawData);
  const extensions = await authorityExtensions(x509, key, { pathLength, permitted });
  return signAs(x509, issuer, { ...terms, subject, publicKey: key, extensions });
}

/** How many CAs may follow a CA certificate (DER) in a chain; undefined for any number. */
export async function pathLengthOf(certificate: Buffer): Promise<number | undefined> {
  const x509 = await x509Library();
  return new x509.X509Certificate(certificate).getExtension(x509.BasicConstraintsExtension)?.pathLength;
}

async function authorityExtensions(
  x509: X509Library,
  publicKey: Buffer,
  { pathLength, permitted }: AuthorityLimits,
): Promise<Extension[]> {
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  return [
    new x509.BasicConstraintsExtension(true, pathLength, true),
    new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    ...(permitted === undefined
      ? []
      : [new x509.Extension(nameConstraintsOid, true, nameConstraints(permitted))]),
  ];
}

async function signAs(x509: X509Library, issuer: X509Issuer, draft: X509Draft): Promise<Buffer> {
  const facts = new X509Certificate(issuer.certificate);
  if (!facts.checkPrivateKey(keyObject(issuer.privateKey))) {
    throw new Error("the private key is not that of the issuer's certificate");
  }
  if (wholeSeconds(draft.notAfter) > facts.validToDate.getTime()) {
    throw new Error('the certificate would be valid for longer than its issuer');
  }
  const certificate = new x509.X509Certificate(issuer.certificate);
  const extensions = [...draft.extensions, await authorityKeyIdentifier(x509, certificate)];
  return sign(x509, { ...draft, extensions }, certificate.subjectName, issuer.privateKey);
}

/**
 * The identifier that the issuer's certificate gives its key (RFC 5280 §4.2.1.1); other CAs compute it in other ways.
 */
async function authorityKeyIdentifier(
  x509: X509Library,
  issuer: InstanceType<X509Library['X509Certificate']>,
): Promise<Extension> {
  const own = issuer.getExtension(x509.SubjectKeyIdentifierExtension);
  return own === null
    ? x509.AuthorityKeyIdentifierExtension.create(issuer.publicKey)
    : new x509.AuthorityKeyIdentifierExtension(own.keyId);
}
