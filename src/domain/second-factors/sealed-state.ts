/**
 * What a person has begun, sealed for their browser: the first step of a sign-in, the set-up of an authenticator app,
 * and the challenges of passkeys. Any node can continue, nothing is stored, and one kind is never accepted in place of
 * another.
 */
import { minute } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import { type BlobOwner, SealError, seal } from '../../crypto/secrets/sealing.ts';
import type { Writer } from '../../db/database.ts';
import { insertFactorUse } from '../../db/tables/access/factor-uses.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import { currentKey, openFor } from '../sealed-secrets.ts';

export type FactorContext = SecretsContext & LogContext;

/** How long a person may take, in milliseconds. */
export const stateLifetime = 5 * minute;

/** A sealed state has about 700 characters. */
export const maxStateLength = 3000;

export type StateKind = 'first step' | 'authenticator app' | 'passkey registration' | 'passkey sign-in';

/** What every state has. */
export type State = {
  /** Random; a state is used once. */
  readonly nonce: string;
  /** UTC milliseconds. */
  readonly expiresAt: number;
};

/** Seals a state as base64url. */
export async function sealState<T extends object>(
  vault: SecretsContext,
  kind: StateKind,
  content: T,
): Promise<{ readonly sealed: Secret<string>; readonly state: T & State }> {
  const { db, world } = vault;
  const nonce = world.randomBytes(32).toString('base64url');
  const state = { ...content, nonce, expiresAt: world.now() + stateLifetime };
  const plaintext = new Secret(Buffer.from(JSON.stringify(state)));
  const blob = seal(await currentKey(vault, db.reader), world, ownerOf(kind), plaintext);
  return { sealed: new Secret(blob.toString('base64url')), state };
}

/** The state in this text. Throws `sign_in_expired` if it has expired, was changed, or is of another vault or kind. */
export function openState<T extends object>(
  vault: SecretsContext,
  kind: StateKind,
  text: string | undefined,
): T & State {
  if (text === undefined || text.length > maxStateLength) throw expired();
  let state: T & State;
  try {
    state = JSON.parse(openFor(vault, ownerOf(kind), Buffer.from(text, 'base64url')).expose().toString());
  } catch (error) {
    if (error instanceof SealError) throw expired();
    throw error;
  }
  if (state.expiresAt <= vault.world.now()) throw expired();
  return state;
}

/** Uses up the state in the transaction of what it permits. Throws `sign_in_expired` if it was used before. */
export async function useState(writer: Writer, { nonce, expiresAt }: State, now: number): Promise<void> {
  if (!(await insertFactorUse(writer, sha256(nonce), { now, expiresAt }))) throw expired();
}

function expired(): Problem {
  return new Problem('sign_in_expired');
}

function ownerOf(kind: StateKind): BlobOwner {
  return { table: 'second factors', record: kind, purpose: 'seal: second factor' };
}
