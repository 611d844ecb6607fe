/** Verifies signed requests for the scripted CA (RFC 8555 §6). Errors are problem documents. */
import { calculateJwkThumbprint, flattenedVerify, importJWK, type JWK } from 'jose';

export type AcmeHeader = {
  readonly alg?: string;
  readonly nonce?: string;
  readonly url?: string;
  readonly kid?: string;
  readonly jwk?: JWK;
};

export type Verified = {
  readonly header: AcmeHeader;
  /** The parsed JSON payload; undefined if it is empty, as in POST-as-GET. */
  readonly payload: Record<string, unknown> | undefined;
  /** The key that signed it. */
  readonly jwk: JWK;
  readonly thumbprint: string;
};

/** An error of the CA, with the last part of its problem type. */
export class Refusal extends Error {
  readonly type: string;
  readonly members: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    type: string,
    detail: string,
    members: Readonly<Record<string, unknown>> = {},
    headers: Readonly<Record<string, string>> = {},
  ) {
    super(detail);
    this.type = type;
    this.members = members;
    this.headers = headers;
  }
}

const algorithms = ['ES256', 'ES384', 'ES512', 'RS256', 'EdDSA'];

/** Verifies the signature and returns the request; `keyOf` finds the key of an account by its URL. */
export async function verifyRequest(
  body: Buffer,
  url: string,
  keyOf: (kid: string) => JWK | undefined,
): Promise<Verified> {
  const jws = jsonOf(body) as { protected: string; payload: string; signature: string };
  const members = Object.keys(jws).sort().join(' ');
  if (members !== 'payload protected signature') throw new Refusal('malformed', `the JWS has ${members}`);
  const header = jsonOf(Buffer.from(jws.protected, 'base64url')) as AcmeHeader;
  if (header.url !== url) throw new Refusal('unauthorized', `signed for ${header.url}, sent to ${url}`);
  if ((header.kid === undefined) === (header.jwk === undefined)) {
    throw new Refusal('malformed', 'exactly one of kid and jwk is needed');
  }
  const jwk = header.jwk ?? keyOf(header.kid ?? '');
  if (jwk === undefined) throw new Refusal('accountDoesNotExist', `no account ${header.kid}`);
  return { ...(await verifyBy(jws, jwk)), header };
}

/** Verifies the inner JWS of a key change (§7.3.5), whose key is in jwk. */
export async function verifyInner(jws: unknown, url: string): Promise<Verified> {
  const { protected: head } = jws as { protected: string };
  const header = jsonOf(Buffer.from(head, 'base64url')) as AcmeHeader;
  if (header.jwk === undefined || header.url !== url || header.nonce !== undefined) {
    throw new Refusal('malformed', 'the inner JWS has wrong headers');
  }
  return { ...(await verifyBy(jws, header.jwk)), header };
}

/** Verifies an external account binding (§7.3.4) and returns its kid. */
export async function verifyBinding(
  jws: unknown,
  url: string,
  accountKey: JWK,
  hmacKeys: Readonly<Record<string, Buffer>>,
): Promise<string> {
  const { protected: head } = jws as { protected: string };
  const { alg, kid = '', url: signedUrl, nonce } = jsonOf(Buffer.from(head, 'base64url')) as AcmeHeader;
  const hmacKey = hmacKeys[kid];
  if (alg !== 'HS256' || signedUrl !== url || nonce !== undefined || hmacKey === undefined) {
    throw new Refusal('unauthorized', `the external account ${kid} cannot be bound`);
  }
  const { payload } = await flattenedVerify(jws as never, new Uint8Array(hmacKey)).catch(() => {
    throw new Refusal('unauthorized', `the MAC of the external account ${kid} is wrong`);
  });
  const bound = await calculateJwkThumbprint(jsonOf(Buffer.from(payload)) as JWK);
  if (bound !== (await calculateJwkThumbprint(accountKey))) {
    throw new Refusal('malformed', 'the binding is for another key');
  }
  return kid;
}

async function verifyBy(jws: unknown, jwk: JWK): Promise<Omit<Verified, 'header'>> {
  const { protected: head } = jws as { protected: string };
  const { alg = '' } = jsonOf(Buffer.from(head, 'base64url')) as AcmeHeader;
  if (!algorithms.includes(alg)) {
    throw new Refusal('badSignatureAlgorithm', `${alg} is not supported`, { algorithms });
  }
  if ('d' in jwk) throw new Refusal('malformed', 'the private key was sent along');
  const { payload } = await importJWK(jwk, alg)
    .then((key) => flattenedVerify(jws as never, key))
    .catch(() => {
      throw new Refusal('unauthorized', 'the signature is wrong');
    });
  const text = Buffer.from(payload);
  return {
    payload: text.length === 0 ? undefined : (jsonOf(text) as Record<string, unknown>),
    jwk,
    thumbprint: await calculateJwkThumbprint(jwk),
  };
}

function jsonOf(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new Refusal('malformed', 'the payload is not JSON');
  }
}
