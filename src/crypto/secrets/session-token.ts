/**
 * The token of a session: a JWT (RFC 7519) with a random id, whose SHA-256 is in the row of the session. The signature
 * lets the vault reject forged tokens without a database query; deleting the row revokes the session. Browsers hold it
 * in a cookie and programs as bearer token, each signed by a key of its own, so that neither works as the other. Also
 * the token of a setup link, which creates the first session.
 */
import type { KeyObject } from 'node:crypto';
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import type { World } from '../../base/world.ts';
import { sameBytes } from './constant-time.ts';
import type { MasterKey } from './master-key.ts';

const algorithm = 'HS256';
const issuer = 'certificate-vault';

/** How the client presents the token of its session. */
export type SessionCarrier = 'cookie' | 'bearer';

const purposes = { cookie: 'sign: session', bearer: 'sign: bearer session' } as const;

/** What distinguishes the token of a program from an API key, for the vault and for scanners. */
const bearerPrefix = 'vs_';

/** Our tokens have about 300 characters; longer ones are not parsed. */
const maxTokenLength = 1000;

export type SessionToken = {
  readonly token: Secret<string>;
  /** The stored hash of its id. */
  readonly idHash: Buffer;
};

/** Loaded at the first use: loading takes a tenth of the run time of a command, and most commands need no sessions. */
const library = async () => (await import('jsonwebtoken')).default;

/** Creates a token with a new id; `createdAt` and `expiresAt` are UTC milliseconds, rounded to seconds in the token. */
export type CreateSessionToken = (
  world: World,
  masterKey: MasterKey,
  times: { readonly createdAt: number; readonly expiresAt: number },
  carrier?: SessionCarrier,
) => SessionToken;

/** Loads the library that creates tokens, because a write transaction must not wait for it. */
export async function sessionTokenCreator(): Promise<CreateSessionToken> {
  const jwt = await library();
  return (world, masterKey, { createdAt, expiresAt }, carrier = 'cookie') => {
    const jti = world.randomBytes(32).toString('base64url');
    const claims = { iss: issuer, iat: seconds(createdAt), exp: Math.ceil(expiresAt / 1000), jti };
    const token = jwt.sign(claims, masterKey.derive(purposes[carrier]), { algorithm });
    return { token: new Secret(carrier === 'bearer' ? bearerPrefix + token : token), idHash: sha256(jti) };
  };
}

/** Whether the text has the form of a session that a program presents as bearer token. */
export function isBearerSession(text: string): boolean {
  return text.startsWith(bearerPrefix);
}

/**
 * The hash of the token's id, or undefined if none of the vault's keys signed it or it has expired at `now`. Several
 * keys, so that rotating the master key signs no one out.
 */
export async function readSessionToken(
  masterKeys: readonly MasterKey[],
  token: string,
  now: number,
  carrier: SessionCarrier = 'cookie',
): Promise<Buffer | undefined> {
  const isBearer = isBearerSession(token);
  if (token.length > maxTokenLength || isBearer !== (carrier === 'bearer')) return undefined;
  const signed = isBearer ? token.slice(bearerPrefix.length) : token;
  for (const masterKey of masterKeys) {
    const idHash = await readSignedBy(masterKey.derive(purposes[carrier]), signed, now);
    if (idHash !== undefined) return idHash;
  }
  return undefined;
}

async function readSignedBy(key: KeyObject, token: string, now: number): Promise<Buffer | undefined> {
  const jwt = await library();
  try {
    const claims = jwt.verify(token, key, {
      algorithms: [algorithm],
      issuer,
      clockTimestamp: seconds(now),
    });
    if (typeof claims === 'string' || typeof claims.jti !== 'string' || typeof claims.exp !== 'number') {
      return undefined;
    }
    return sha256(claims.jti);
  } catch (error) {
    // Malformed, forged and expired tokens count as missing, as does invalid JSON; any other error is a bug.
    if (error instanceof jwt.JsonWebTokenError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The secret of a setup link, to be shown once, with its stored form. */
export function createSetupToken(world: World): SessionToken {
  const token = world.randomBytes(32).toString('base64url');
  return { token: new Secret(token), idHash: sha256(token) };
}

/** Whether the text is the setup token with this stored hash, in constant time. */
export function setupTokenMatches(presented: Secret<string>, kept: Buffer): boolean {
  return sameBytes(sha256(presented.expose()), kept);
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
