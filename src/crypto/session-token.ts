/**
 * The token in a session's cookie: a JWT (RFC 7519) whose id is random and stands, as SHA-256, in the session's row. The
 * signature lets the vault refuse what it never made without a look into the database; the row is what can be ended.
 * Beside it the token of a setup link, which makes the first session.
 */
import { Secret } from '../base/secret.ts';
import { sha256 } from '../base/sha256.ts';
import type { World } from '../base/world.ts';
import { sameBytes } from './constant-time.ts';
import type { MasterKey } from './master-key.ts';

const algorithm = 'HS256';
const issuer = 'certificate-vault';
const purpose = 'sign: session';

/** Ours have about 300 characters; longer ones are not even parsed. */
const longestToken = 1000;

export type SessionToken = {
  readonly token: Secret<string>;
  /** What is kept of its id. */
  readonly idHash: Buffer;
};

/** Loaded at the first use: it takes a tenth of the time in which a command is done, and most have nothing to do with sessions. */
const library = async () => (await import('jsonwebtoken')).default;

/** Creates a token with a new id; `createdAt` and `expiresAt` are UTC milliseconds, and the token knows whole seconds. */
export type CreateSessionToken = (
  world: World,
  masterKey: MasterKey,
  times: { readonly createdAt: number; readonly expiresAt: number },
) => SessionToken;

/** Loads what creates tokens. Tokens are created in a write transaction, which must not wait for a library to load. */
export async function sessionTokenCreator(): Promise<CreateSessionToken> {
  const jwt = await library();
  return (world, masterKey, { createdAt, expiresAt }) => {
    const jti = world.randomBytes(32).toString('base64url');
    const claims = { iss: issuer, iat: seconds(createdAt), exp: Math.ceil(expiresAt / 1000), jti };
    const token = jwt.sign(claims, masterKey.derive(purpose), { algorithm });
    return { token: new Secret(token), idHash: sha256(jti) };
  };
}

/**
 * The hash of the token's id, or undefined where none of the vault's keys signed it, or it is over at `now`. More than one
 * key: nobody is signed out because one has followed another.
 */
export async function readSessionToken(
  masterKeys: readonly MasterKey[],
  token: string,
  now: number,
): Promise<Buffer | undefined> {
  if (token.length > longestToken) return undefined;
  for (const masterKey of masterKeys) {
    const idHash = await readSignedBy(masterKey, token, now);
    if (idHash !== undefined) return idHash;
  }
  return undefined;
}

async function readSignedBy(masterKey: MasterKey, token: string, now: number): Promise<Buffer | undefined> {
  const jwt = await library();
  try {
    const claims = jwt.verify(token, masterKey.derive(purpose), {
      algorithms: [algorithm],
      issuer,
      clockTimestamp: seconds(now),
    });
    if (typeof claims === 'string' || typeof claims.jti !== 'string' || typeof claims.exp !== 'number') {
      return undefined;
    }
    return sha256(claims.jti);
  } catch (error) {
    // Malformed, forged and expired tokens are all none, and so is what holds no JSON; anything else is a bug.
    if (error instanceof jwt.JsonWebTokenError || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** The secret of a setup link, to be shown once, and what is kept of it. */
export function createSetupToken(world: World): SessionToken {
  const token = world.randomBytes(32).toString('base64url');
  return { token: new Secret(token), idHash: sha256(token) };
}

/** Whether the text is the setup token whose hash is kept, in constant time. */
export function setupTokenMatches(presented: Secret<string>, kept: Buffer): boolean {
  return sameBytes(sha256(presented.expose()), kept);
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
