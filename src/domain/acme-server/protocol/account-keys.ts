/**
 * The keys of accounts: which are accepted, their thumbprints (RFC 7638), and those that requests are verified with at
 * present.
 */
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto';
import { promisify } from 'node:util';
import { z } from 'zod';
import { type Json, parseJson } from '../../../base/json.ts';
import { boundedCache } from '../../cache/bounded-cache.ts';
import { AcmeProblem } from './acme-problem.ts';
import { fromBase64Url, type SignedMessage } from './signed-messages.ts';

/** The algorithms of requests (RFC 8555 §6.2), as errors list them. */
export const requestAlgorithms = ['ES256', 'ES384', 'RS256', 'EdDSA'] as const;

type RequestAlgorithm = (typeof requestAlgorithms)[number];

/** A public key of an accepted type. */
export type AccountKey = {
  /** The required members in the order of RFC 7638 §3.2: its JSON is what the thumbprint is the hash of. */
  readonly jwk: Readonly<Record<string, string>>;
  readonly alg: RequestAlgorithm;
  /** base64url. */
  readonly thumbprint: string;
};

const maxKeys = 5000;
const fewestBits = 2048;
const maxBits = 4096;
const defaultExponent = 'AQAB';
const keyRule = 'Use P-256, P-384, Ed25519, or RSA with 2048 to 4096 bits and the exponent 65537.';

const anyKey = z.object({ kty: z.string(), crv: z.string().optional() });
const point = z.object({ x: z.string(), y: z.string() });
const rsa = z.object({ n: z.string(), e: z.string() });

/**
 * The key in a JWK (RFC 7517). Throws `malformed` for what is none or is private, and `badPublicKey` for another type
 * of key.
 */
export function readAccountKey(jwk: unknown): AccountKey {
  const { data } = anyKey.safeParse(jwk);
  if (data === undefined)
    throw new AcmeProblem('malformed', 'The jwk must be a public key as a JSON object.');
  const isPrivate = ['d', 'p', 'q', 'k'].some((name) => Object.hasOwn(jwk as object, name));
  if (isPrivate) {
    throw new AcmeProblem('malformed', 'The jwk has a private key, which must stay with the client.');
  }
  const { kty, crv = '' } = data;
  if (kty === 'EC' && crv === 'P-256') return curveKey(jwk, crv, 32, 'ES256');
  if (kty === 'EC' && crv === 'P-384') return curveKey(jwk, crv, 48, 'ES384');
  if (kty === 'OKP' && crv === 'Ed25519') {
    const { x } = membersOf(z.object({ x: z.string() }), jwk);
    requireBytes(x, 32);
    return keyOf({ crv, kty, x }, 'EdDSA');
  }
  if (kty === 'RSA') return rsaKey(jwk);
  throw new AcmeProblem('badPublicKey', `Keys of this type are not accepted. ${keyRule}`);
}

function curveKey(jwk: unknown, crv: string, size: number, alg: RequestAlgorithm): AccountKey {
  const { x, y } = membersOf(point, jwk);
  requireBytes(x, size);
  requireBytes(y, size);
  return keyOf({ crv, kty: 'EC', x, y }, alg);
}

function rsaKey(jwk: unknown): AccountKey {
  const { n, e } = membersOf(rsa, jwk);
  const modulus = fromBase64Url(n);
  const bits = modulus === undefined ? 0 : modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24;
  if (bits < fewestBits || bits > maxBits || e !== defaultExponent) {
    throw new AcmeProblem('badPublicKey', `This RSA key is not accepted. ${keyRule}`);
  }
  return keyOf({ e, kty: 'RSA', n }, 'RS256');
}

function membersOf<T>(schema: z.ZodType<T>, jwk: unknown): T {
  const { data } = schema.safeParse(jwk);
  if (data === undefined) throw damaged();
  return data;
}

function requireBytes(encoded: string, size: number): void {
  if (fromBase64Url(encoded)?.length !== size) throw damaged();
}

function damaged(): AcmeProblem {
  return new AcmeProblem(
    'badPublicKey',
    'The jwk lacks a member of its type of key, or has one of another length.',
  );
}

function keyOf(jwk: Readonly<Record<string, string>>, alg: RequestAlgorithm): AccountKey {
  return { jwk, alg, thumbprint: createHash('sha256').update(JSON.stringify(jwk)).digest('base64url') };
}

/** A key that was accepted before, from its stored JSON. */
export function storedAccountKey({
  jwk,
  thumbprint,
}: {
  readonly jwk: Json<AccountKey['jwk']>;
  readonly thumbprint: string;
}): AccountKey {
  const members = parseJson(jwk);
  const byCurve: Readonly<Record<string, RequestAlgorithm>> = {
    'P-256': 'ES256',
    'P-384': 'ES384',
    Ed25519: 'EdDSA',
  };
  return { jwk: members, alg: byCurve[members.crv ?? ''] ?? 'RS256', thumbprint };
}

/** How node:crypto verifies each algorithm (RFC 7518 §3.1, RFC 8037 §3.1). */
const verifications: Readonly<
  Record<RequestAlgorithm, { readonly digest: string | null; readonly size?: number }>
> = {
  ES256: { digest: 'sha256', size: 64 },
  ES384: { digest: 'sha384', size: 96 },
  RS256: { digest: 'sha256' },
  EdDSA: { digest: null },
};

const verifyOnThread = promisify(verify);

/**
 * Verifies messages with account keys; keeps those that were used last, because opening one takes as long as verifying.
 */
export class AccountKeys {
  readonly #opened = boundedCache<string, KeyObject>(maxKeys);

  /**
   * Throws `badSignatureAlgorithm` if the algorithm of the message is not that of the key, `badPublicKey` for a point
   * that is not on its curve, and `malformed` if another key signed the message.
   */
  async requireSignature(message: SignedMessage, key: AccountKey): Promise<void> {
    const { alg } = message.header;
    if (alg !== key.alg) throw badAlgorithm(`This key signs with ${key.alg}, not with`, alg);
    if (await isSigned(message, key.alg, this.#open(key))) return;
    throw new AcmeProblem('malformed', 'The signature does not match the key and the signed content.');
  }

  #open({ jwk, thumbprint }: AccountKey): KeyObject {
    const known = this.#opened.get(thumbprint);
    if (known !== undefined) return known;
    let key: KeyObject;
    try {
      key = createPublicKey({ key: jwk, format: 'jwk' });
    } catch (cause) {
      throw new AcmeProblem('badPublicKey', `The jwk is not a valid key. ${keyRule}`, { cause });
    }
    this.#opened.set(thumbprint, key);
    return key;
  }
}

/** With P-384, verifying takes ten times as long as otherwise: only then is it worth the way to another thread. */
function isSigned(
  { jws }: SignedMessage,
  alg: RequestAlgorithm,
  opened: KeyObject,
): boolean | Promise<boolean> {
  const { digest, size } = verifications[alg];
  const signature = Buffer.from(jws.signature, 'base64url');
  if (size !== undefined && signature.length !== size) return false;
  const signed = Buffer.from(`${jws.protected}.${jws.payload}`);
  const key = { key: opened, dsaEncoding: 'ieee-p1363' } as const;
  return alg === 'ES384'
    ? verifyOnThread(digest, signed, key, signature)
    : verify(digest, signed, key, signature);
}

/** Throws `badSignatureAlgorithm` for an algorithm that no account key has (RFC 8555 §6.2). */
export function refuseOtherAlgorithm({ header: { alg } }: SignedMessage): void {
  if (!requestAlgorithms.some((one) => one === alg))
    throw badAlgorithm('Requests are not accepted with', alg);
}

function badAlgorithm(why: string, alg: string): AcmeProblem {
  return new AcmeProblem(
    'badSignatureAlgorithm',
    `${why} the algorithm ${JSON.stringify(alg.slice(0, 50))}; use ${requestAlgorithms.join(', ')}.`,
    { algorithms: requestAlgorithms },
  );
}
