/**
 * The X.509 library, loaded for the first certificate or request because that takes a tenth of a second, and what all
 * our signatures with it have in common.
 */
import type { webcrypto } from 'node:crypto';
import type { Extension, JsonGeneralName, X509CertificateCreateParamsName } from '@peculiar/x509';
import { type Identifier, isAddress } from '../../base/identifier.ts';
import { isKeyType, type KeyType } from '../../base/key-type.ts';
import type { Secret } from '../../base/secret.ts';
import { keyObject, keyTypeOf } from '../key-pair.ts';

export type X509Terms = {
  /** 16 random bytes. Two bits are set here, so that the number is positive and always has 16 octets. */
  readonly serial: Buffer;
  /** UTC milliseconds; fractions of a second are dropped. */
  readonly notBefore: number;
  readonly notAfter: number;
};

export type X509Library = typeof import('@peculiar/x509');

type Signature = webcrypto.RsaHashedImportParams & Partial<webcrypto.EcKeyImportParams>;

/** A certificate before it is signed. */
export type X509Draft = X509Terms & {
  readonly subject: X509CertificateCreateParamsName;
  /** SPKI DER. */
  readonly publicKey: Buffer;
  readonly extensions: readonly Extension[];
};

const rsa: Signature = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' };

/** How each key type signs, in terms of Web Cryptography: the hash is as strong as the curve (RFC 5480 §4). */
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

/** The library needs the metadata API of its decorators before it is loaded. */
export async function x509Library(): Promise<X509Library> {
  await import('reflect-metadata');
  return import('@peculiar/x509');
}

/** The first DNS name that fits into a common name. */
export function commonNameFor(identifiers: readonly Identifier[]): string | undefined {
  return identifiers.find((identifier) => !isAddress(identifier) && identifier.length <= maxCommonName);
}

/** A typed name, because a plain string would be parsed as RFC 4514, with escapes and several parts. */
export function nameOf(x509: X509Library, commonName: string | undefined) {
  return new x509.Name(commonName === undefined ? [] : [{ CN: [{ utf8String: commonName }] }]);
}

/** The entry of a subjectAltName. */
export function generalName(value: Identifier): JsonGeneralName {
  return { type: isAddress(value) ? 'ip' : 'dns', value };
}

/** The signature algorithm of a PKCS#8 key. Throws a plain error for an unsupported key type. */
export function signatureOf(privateKey: Secret): Signature {
  const keyType = keyTypeOf(keyObject(privateKey));
  if (!isKeyType(keyType)) throw new Error(`signing with ${keyType} keys is not supported`);
  return signatures[keyType];
}

/** The signed certificate (DER), with the issuer's key. Throws like `signatureOf`. */
export async function sign(
  x509: X509Library,
  { serial, notBefore, notAfter, extensions, ...draft }: X509Draft,
  issuer: X509CertificateCreateParamsName,
  privateKey: Secret,
): Promise<Buffer> {
  const algorithm = signatureOf(privateKey);
  const certificate = await x509.X509CertificateGenerator.create({
    ...draft,
    issuer,
    serialNumber: positive(serial).toString('hex'),
    notBefore: new Date(wholeSeconds(notBefore)),
    notAfter: new Date(wholeSeconds(notAfter)),
    extensions: [...extensions],
    signingKey: keyObject(privateKey).toCryptoKey(algorithm, false, ['sign']),
    signingAlgorithm: algorithm,
  });
  return Buffer.from(certificate.rawData);
}

/** Drops the fraction of a second, which X.509 cannot express. */
export function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}

/** Neither negative nor zero, and without leading zeros, which would shorten the number (RFC 5280 §4.1.2.2). */
export function positive(serial: Buffer): Buffer {
  const first = (serial.readUInt8(0) & 0x7f) | 0x40;
  return Buffer.concat([Buffer.of(first), serial.subarray(1)]);
}
