/** Issues the certificates of the built-in private CA: root, intermediate and leaf (RFC 5280). */
import { createPublicKey, X509Certificate } from 'node:crypto';
import type { Extension } from '@peculiar/x509';
import { type Identifier, isAddress } from '../base/identifier.ts';
import type { Secret } from '../base/secret.ts';
import { keyObject, publicKeyOf } from './key-pair.ts';
import {
  commonNameFor,
  generalName,
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

export type RootRequest = X509Terms & { readonly commonName: string; readonly privateKey: Secret };

export type IntermediateRequest = X509Terms & {
  readonly commonName: string;
  /** SPKI DER. */
  readonly publicKey: Buffer;
  readonly issuer: X509Issuer;
};

export type LeafRequest = X509Terms & {
  /** At least one; the subject's common name is the first DNS name. */
  readonly identifiers: readonly Identifier[];
  /** SPKI DER. */
  readonly publicKey: Buffer;
  readonly issuer: X509Issuer;
};

/** A self-signed root (DER) that may sign intermediates and, through them, leaves (RFC 5280 §4.2.1.9). */
export async function issueRoot({ commonName, privateKey, ...terms }: RootRequest): Promise<Buffer> {
  const x509 = await x509Library();
  const publicKey = publicKeyOf(privateKey);
  const subject = nameOf(x509, commonName);
  const extensions = await authorityExtensions(x509, publicKey, 1);
  return sign(x509, { ...terms, subject, publicKey, extensions }, subject, privateKey);
}

/**
 * An intermediate (DER) that may sign only leaves. Throws a plain error if it would outlive its issuer, or if the
 * issuer's key does not match its certificate.
 */
export async function issueIntermediate(request: IntermediateRequest): Promise<Buffer> {
  const { commonName, publicKey, issuer, ...terms } = request;
  const x509 = await x509Library();
  const extensions = await authorityExtensions(x509, publicKey, 0);
  return signAs(x509, issuer, { ...terms, subject: nameOf(x509, commonName), publicKey, extensions });
}

/**
 * A leaf (DER) for servers and clients with these names. If no DNS name fits into a common name, the subject is empty
 * and the names are critical (RFC 5280 §4.2.1.6). Throws like `issueIntermediate`.
 */
export async function issueLeaf(request: LeafRequest): Promise<Buffer> {
  const { identifiers, publicKey, issuer, ...terms } = request;
  if (identifiers.length === 0) throw new Error('a leaf needs a name');
  const x509 = await x509Library();
  const commonName = commonNameFor(identifiers.filter((identifier) => !isAddress(identifier)).slice(0, 1));
  const { serverAuth, clientAuth } = x509.ExtendedKeyUsage;
  const extensions = [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(leafUsages(x509, publicKey), true),
    new x509.ExtendedKeyUsageExtension([serverAuth, clientAuth]),
    new x509.SubjectAlternativeNameExtension(identifiers.map(generalName), commonName === undefined),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ];
  return signAs(x509, issuer, { ...terms, subject: nameOf(x509, commonName), publicKey, extensions });
}

async function authorityExtensions(
  x509: X509Library,
  publicKey: Buffer,
  pathLength: number,
): Promise<Extension[]> {
  const { keyCertSign, cRLSign } = x509.KeyUsageFlags;
  return [
    new x509.BasicConstraintsExtension(true, pathLength, true),
    new x509.KeyUsagesExtension(keyCertSign | cRLSign, true),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
  ];
}

/** Only RSA keys can encipher keys, as in TLS 1.2 without ephemeral keys (RFC 5280 §4.2.1.3). */
function leafUsages(x509: X509Library, publicKey: Buffer): number {
  const { digitalSignature, keyEncipherment } = x509.KeyUsageFlags;
  const { asymmetricKeyType } = createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
  return asymmetricKeyType === 'rsa' ? digitalSignature | keyEncipherment : digitalSignature;
}

async function signAs(x509: X509Library, issuer: X509Issuer, draft: X509Draft): Promise<Buffer> {
  const facts = new X509Certificate(issuer.certificate);
  if (!facts.checkPrivateKey(keyObject(issuer.privateKey))) {
    throw new Error("the private key is not that of the issuer's certificate");
  }
  if (wholeSeconds(draft.notAfter) > facts.validToDate.getTime()) {
    throw new Error('the certificate would be valid for longer than its issuer');
  }
  const { subjectName, publicKey } = new x509.X509Certificate(issuer.certificate);
  const extensions = [...draft.extensions, await x509.AuthorityKeyIdentifierExtension.create(publicKey)];
  return sign(x509, { ...draft, extensions }, subjectName, issuer.privateKey);
}
