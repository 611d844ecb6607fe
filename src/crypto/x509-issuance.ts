/**
 * Makes the certificates of the built-in private CA: root, intermediate and leaf (RFC 5280). The X.509 library takes a
 * tenth of a second to load, so it is loaded when the first certificate is issued.
 */
import { createPublicKey, type webcrypto, X509Certificate } from 'node:crypto';
import type { Extension, JsonGeneralName, X509CertificateCreateParamsName } from '@peculiar/x509';
import { type Identifier, isAddress } from '../base/identifier.ts';
import { isKeyType, type KeyType } from '../base/key-type.ts';
import type { Secret } from '../base/secret.ts';
import { keyObject, keyTypeOf, publicKeyOf } from './key-pair.ts';

/** A certificate of the CA, DER, and its PKCS#8 private key. */
export type X509Issuer = { readonly certificate: Buffer; readonly privateKey: Secret };

export type X509Terms = {
  /** 16 random bytes. Two of their bits are set here, so that the number is positive and has always 16 octets. */
  readonly serial: Buffer;
  /** UTC milliseconds, from which fractions of a second are cut off. */
  readonly notBefore: number;
  readonly notAfter: number;
};

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

type Library = typeof import('@peculiar/x509');
type Signature = webcrypto.RsaHashedImportParams & Partial<webcrypto.EcKeyImportParams>;
type Draft = X509Terms & {
  readonly subject: X509CertificateCreateParamsName;
  readonly publicKey: Buffer;
  readonly extensions: readonly Extension[];
};

const rsa: Signature = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

/** How each kind of key signs, in the words of Web Cryptography: the hash is as strong as the curve (RFC 5480 §4). */
const signatures: Readonly<Record<KeyType, Signature>> = {
  ec256: { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' },
  ec384: { name: 'ECDSA', namedCurve: 'P-384', hash: 'SHA-384' },
  rsa2048: rsa,
  rsa3072: rsa,
  rsa4096: rsa,
  ed25519: { name: 'Ed25519', hash: 'SHA-512' },
};

/** The upper bound of a common name (RFC 5280 §A.1, ub-common-name); DNS names may be longer. */
const maxCommonName = 64;

/** A self-signed root, DER, that may sign intermediates, and through them leaves (RFC 5280 §4.2.1.9). */
export async function issueRoot({ commonName, privateKey, ...terms }: RootRequest): Promise<Buffer> {
  const x509 = await library();
  const publicKey = publicKeyOf(privateKey);
  const subject = nameOf(x509, commonName);
  const extensions = await authorityExtensions(x509, publicKey, 1);
  return sign(x509, { ...terms, subject, publicKey, extensions }, subject, privateKey);
}

/**
 * An intermediate, DER, that may sign leaves only. Throws a plain error where it would outlive its issuer, or the
 * issuer's key is not that of its certificate.
 */
export async function issueIntermediate(request: IntermediateRequest): Promise<Buffer> {
  const { commonName, publicKey, issuer, ...terms } = request;
  const x509 = await library();
  const extensions = await authorityExtensions(x509, publicKey, 0);
  return signAs(x509, issuer, { ...terms, subject: nameOf(x509, commonName), publicKey, extensions });
}

/**
 * A leaf, DER, for servers and clients under these names. Where the first DNS name is too long for a common name, or
 * there is none, the subject is empty and the names are critical (RFC 5280 §4.2.1.6). Throws as `issueIntermediate`.
 */
export async function issueLeaf(request: LeafRequest): Promise<Buffer> {
  const { identifiers, publicKey, issuer, ...terms } = request;
  if (identifiers.length === 0) throw new Error('a leaf needs a name');
  const x509 = await library();
  const name = identifiers.find((identifier) => !isAddress(identifier));
  const commonName = name !== undefined && name.length <= maxCommonName ? name : undefined;
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

/** The library needs the metadata API of its decorators to be there before it runs. */
async function library(): Promise<Library> {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

/** A name of its own type, because a plain string would be read as RFC 4514, with escapes and several parts. */
function nameOf(x509: Library, commonName: string | undefined) {
  return new x509.Name(commonName === undefined ? [] : [{ CN: [{ utf8String: commonName }] }]);
}

function generalName(value: Identifier): JsonGeneralName {
  return { type: isAddress(value) ? 'ip' : 'dns', value };
}

async function authorityExtensions(
  x509: Library,
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

/** Only RSA can encipher keys, as TLS 1.2 without ephemeral keys does (RFC 5280 §4.2.1.3). */
function leafUsages(x509: Library, publicKey: Buffer): number {
  const { digitalSignature, keyEncipherment } = x509.KeyUsageFlags;
  const { asymmetricKeyType } = createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
  return asymmetricKeyType === 'rsa' ? digitalSignature | keyEncipherment : digitalSignature;
}

async function signAs(x509: Library, issuer: X509Issuer, draft: Draft): Promise<Buffer> {
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

async function sign(
  x509: Library,
  { serial, notBefore, notAfter, extensions, ...draft }: Draft,
  issuer: X509CertificateCreateParamsName,
  privateKey: Secret,
): Promise<Buffer> {
  const key = keyObject(privateKey);
  const keyType = keyTypeOf(key);
  if (!isKeyType(keyType)) throw new Error(`the private CA does not sign with ${keyType} keys`);
  const certificate = await x509.X509CertificateGenerator.create({
    ...draft,
    issuer,
    serialNumber: positive(serial).toString('hex'),
    notBefore: new Date(wholeSeconds(notBefore)),
    notAfter: new Date(wholeSeconds(notAfter)),
    extensions: [...extensions],
    signingKey: key.toCryptoKey(signatures[keyType], false, ['sign']),
    signingAlgorithm: signatures[keyType],
  });
  return Buffer.from(certificate.rawData);
}

/** Neither negative nor zero, and without leading zeros, which would make the number shorter (RFC 5280 §4.1.2.2). */
function positive(serial: Buffer): Buffer {
  const first = (serial.readUInt8(0) & 0x7f) | 0x40;
  return Buffer.concat([Buffer.of(first), serial.subarray(1)]);
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
