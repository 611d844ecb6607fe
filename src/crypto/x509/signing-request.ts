/**
 * Reads certificate signing requests (PKCS#10, RFC 2986) of strangers: their proof of possession, their key and the
 * names they ask for. The cost is bounded by the size: the key is checked before OpenSSL verifies a signature with it.
 */
import { createPublicKey, type KeyObject, verify, type webcrypto } from 'node:crypto';
import { Problem } from '../../base/problem.ts';
import { DerError, DerReader, derTags } from '../der-reader.ts';
import { keyTypeOf } from '../key-pair.ts';
import { encodePem, pemText, readPemBlocks } from '../pem.ts';
import { publicKeyPin } from '../public-key-pin.ts';
import { refuseWeakKey, signatureHash } from './request-key.ts';
import { RequestRefused } from './request-refused.ts';
import { type RequestedNames, requestedNames } from './requested-names.ts';

/** The largest request that is read, in bytes of its file. */
export const maxRequestSize = 65_536;

export type SigningRequest = RequestedNames & {
  /** In the strict form, so that equal requests are equal texts. */
  readonly pem: string;
  readonly der: Buffer;
  /** SPKI DER. */
  readonly publicKey: Buffer;
  /** A result of `keyTypeOf`. */
  readonly keyType: string;
  /** `sha256//…` of the public key. */
  readonly pin: string;
  /** The public key as JWK. */
  readonly jwk: webcrypto.JsonWebKey;
};

const label = /^(NEW )?CERTIFICATE REQUEST$/;

/**
 * The request in a PEM text. Its signature is verified, which proves that the sender has the private key. Throws
 * RequestRefused for anything but one request with a key and names that a CA may certify.
 */
export function readSigningRequest(text: string): SigningRequest {
  if (text.length > maxRequestSize) throw new RequestRefused('is larger than 64 KiB');
  const blocks = blocksIn(text);
  if (blocks.some((block) => block.label.endsWith('PRIVATE KEY'))) {
    throw new RequestRefused('comes with a private key, which must stay where it is; send the request alone');
  }
  const [request, ...others] = blocks.filter((block) => label.test(block.label));
  if (request === undefined) {
    const isCertificate = blocks.some((block) => block.label.endsWith('CERTIFICATE'));
    throw new RequestRefused(
      isCertificate
        ? 'is a certificate, not a request; create a request with "openssl req -new"'
        : 'has no PEM block "-----BEGIN CERTIFICATE REQUEST-----"',
    );
  }
  if (others.length > 0) throw new RequestRefused('has several requests; send one');
  return readRequestDer(request.der);
}

/** The request in DER. Throws like `readSigningRequest`. */
export function readRequestDer(der: Buffer): SigningRequest {
  if (der.length > maxRequestSize) throw new RequestRefused('is larger than 64 KiB');
  try {
    return requestIn(der);
  } catch (error) {
    if (error instanceof DerError) throw new RequestRefused(`is damaged: its DER ${error.message}`);
    throw error;
  }
}

/** The PEM of a file with a request, which may be DER. Nothing is checked. */
export function requestText(bytes: Buffer): string {
  return bytes[0] === derTags.sequence ? encodePem('CERTIFICATE REQUEST', bytes) : pemText(bytes);
}

function blocksIn(text: string) {
  try {
    return readPemBlocks(text, 'The CSR');
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    throw new RequestRefused(error.message.replace(/^The CSR /, '').replace(/\.$/, ''));
  }
}

/** CertificationRequest (RFC 2986 §4.2). */
function requestIn(der: Buffer): SigningRequest {
  const file = new DerReader(der);
  const request = file.enter(derTags.sequence);
  file.end();
  const signed = request.take(derTags.sequence);
  const algorithm = request.take(derTags.sequence).whole;
  const signature = bits(request.take(derTags.bitString).content);
  request.end();
  const info = new DerReader(signed.content);
  const version = info.take(derTags.integer).content;
  if (version.length !== 1 || version[0] !== 0) throw new RequestRefused('has a version other than 1');
  const subject = info.enter(derTags.sequence);
  const publicKey = info.take(derTags.sequence).whole;
  // Some programs leave the attributes out if there are none.
  const attributes = info.isDone ? undefined : info.enter(0xa0);
  info.end();
  refuseWeakKey(publicKey);
  const hash = signatureHash(algorithm, publicKey);
  const key = opened(publicKey);
  if (!verify(hash, signed.whole, key, signature)) {
    throw new RequestRefused(
      'has a signature that its key did not make; it was changed, or the key does not match',
    );
  }
  const names = requestedNames(subject, attributes);
  return {
    ...names,
    pem: encodePem('CERTIFICATE REQUEST', der),
    der,
    publicKey,
    keyType: keyTypeOf(key),
    get pin() {
      return publicKeyPin({ publicKey: key });
    },
    get jwk() {
      return key.export({ format: 'jwk' });
    },
  };
}

/** Whole bytes of a BIT STRING. */
function bits(content: Buffer): Buffer {
  if (content[0] !== 0) throw new DerError('has a bit string with unused bits');
  return content.subarray(1);
}

function opened(publicKey: Buffer): KeyObject {
  try {
    return createPublicKey({ key: publicKey, format: 'der', type: 'spki' });
  } catch {
    // A point that is not on its curve.
    throw new RequestRefused('has a public key that is not valid', 'key');
  }
}

/**
 * Whether two accepted requests (PEM; null for none) ask for the same key, names and common name, so that either will
 * do.
 */
export function isSameRequest(one: string | null, other: string | null): boolean {
  if (one === other) return true;
  if (one === null || other === null) return false;
  return essence(readSigningRequest(one)) === essence(readSigningRequest(other));
}

function essence({ pin, domains, uris, emails, commonName }: SigningRequest): string {
  return JSON.stringify([
    pin,
    commonName ?? null,
    ...[domains, uris, emails].map((names) => names.toSorted()),
  ]);
}
