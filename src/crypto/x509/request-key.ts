/**
 * Which keys and signatures a certificate signing request may have. Compared as bytes before OpenSSL sees them: an RSA
 * key with a huge exponent or a curve with parameters of its own would keep it busy.
 */
import { DerError, DerReader, derTags, dottedIdentifier } from '../der-reader.ts';
import { RequestRefused } from './request-refused.ts';

/** AlgorithmIdentifier of the public keys that are accepted, as DER. */
const keyAlgorithms = new Map([
  ['300d06092a864886f70d0101010500', 'rsa'],
  ['301306072a8648ce3d020106082a8648ce3d030107', 'ec'],
  ['301006072a8648ce3d020106052b81040022', 'ec'],
  ['300506032b6570', 'ed25519'],
] as const);

/** AlgorithmIdentifier of the signatures that are accepted: the kind of key, and the hash. */
const signatureAlgorithms = new Map([
  ['300d06092a864886f70d01010b0500', { key: 'rsa', hash: 'sha256' }],
  ['300d06092a864886f70d01010c0500', { key: 'rsa', hash: 'sha384' }],
  ['300d06092a864886f70d01010d0500', { key: 'rsa', hash: 'sha512' }],
  ['300a06082a8648ce3d040302', { key: 'ec', hash: 'sha256' }],
  ['300a06082a8648ce3d040303', { key: 'ec', hash: 'sha384' }],
  ['300a06082a8648ce3d040304', { key: 'ec', hash: 'sha512' }],
  ['300506032b6570', { key: 'ed25519', hash: null }],
] as const);

const weakSignatures: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.4': 'MD5',
  '1.2.840.113549.1.1.5': 'SHA-1',
  '1.2.840.10045.4.1': 'SHA-1',
};

const fewestBits = 2048;
const maxBits = 4096;
/** 65537, which every program uses; another one is a mistake or an attack. */
const defaultExponent = Buffer.from('010001', 'hex');

const keyRule = 'use RSA with 2048 to 4096 bits, P-256, P-384 or Ed25519';

/** Throws RequestRefused for a public key (SPKI DER) that is not accepted. */
export function refuseWeakKey(publicKey: Buffer): void {
  const spki = new DerReader(publicKey).enter(derTags.sequence);
  const algorithm = spki.take(derTags.sequence).whole;
  const key = spki.take(derTags.bitString).content;
  spki.end();
  const kind = keyAlgorithms.get(algorithm.toString('hex') as never);
  if (kind === undefined) {
    throw new RequestRefused(
      `has a key of a type that is not accepted (${namesOf(algorithm)}); ${keyRule}`,
      'key',
    );
  }
  if (kind === 'rsa') refuseWeakRsa(key.subarray(1));
}

/** RSAPublicKey (RFC 8017 §A.1.1). */
function refuseWeakRsa(der: Buffer): void {
  const file = new DerReader(der);
  const key = file.enter(derTags.sequence);
  file.end();
  const modulus = positive(key.take(derTags.integer).content);
  const exponent = positive(key.take(derTags.integer).content);
  key.end();
  const size = bitsOf(modulus);
  if (size < fewestBits || size > maxBits || size % 8 !== 0) {
    throw new RequestRefused(`has an RSA key of ${size} bits; ${keyRule}`, 'key');
  }
  if (!exponent.equals(defaultExponent)) {
    throw new RequestRefused('has an RSA key with an exponent other than 65537; generate another key', 'key');
  }
  if (((modulus.at(-1) ?? 0) & 1) === 0)
    throw new RequestRefused('has an RSA key with an even modulus', 'key');
}

/** The hash of a signature by this key; null for Ed25519, which has its own. Throws RequestRefused for others. */
export function signatureHash(algorithm: Buffer, publicKey: Buffer): string | null {
  const found = acceptedSignature(algorithm);
  const own = new DerReader(publicKey).enter(derTags.sequence).take(derTags.sequence).whole;
  if (keyAlgorithms.get(own.toString('hex') as never) !== found.key) {
    throw new RequestRefused('is signed with an algorithm of another type of key');
  }
  return found.hash;
}

/**
 * Throws RequestRefused for a signature (AlgorithmIdentifier as DER) with a broken hash, or of an unknown algorithm.
 */
export function refuseWeakSignature(algorithm: Buffer): void {
  acceptedSignature(algorithm);
}

function acceptedSignature(algorithm: Buffer) {
  const found = signatureAlgorithms.get(algorithm.toString('hex') as never);
  if (found !== undefined) return found;
  const names = namesOf(algorithm);
  const weak = weakSignatures[names.split(' ')[0] ?? ''];
  throw new RequestRefused(
    weak === undefined
      ? `is signed with an algorithm that is not accepted (${names}); sign it with SHA-256`
      : `is signed with ${weak}, which is broken; sign it with SHA-256`,
  );
}

/** The object identifiers at the beginning of an AlgorithmIdentifier. */
function namesOf(algorithm: Buffer): string {
  const parts = new DerReader(algorithm).enter(derTags.sequence);
  const names = [dottedIdentifier(parts.take(derTags.objectIdentifier).content)];
  if (parts.nextTag === derTags.objectIdentifier) names.push(dottedIdentifier(parts.next().content));
  return names.join(' ');
}

/** The bytes of a positive INTEGER without the leading zero that keeps it positive. */
function positive(content: Buffer): Buffer {
  const [first = 0x80, second = 0] = content;
  if (first >= 0x80 || (first === 0 && second < 0x80))
    throw new DerError('has an integer that DER does not allow');
  return first === 0 ? content.subarray(1) : content;
}

function bitsOf(magnitude: Buffer): number {
  return magnitude.length * 8 - Math.clz32(magnitude[0] ?? 0) + 24;
}
