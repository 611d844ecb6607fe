/**
 * A sign-in that has begun, sealed for the browser that began it: any node can finish it, and no other browser. The
 * browser cannot read or change it.
 */
import { minute } from '../../base/duration.ts';
import { Secret } from '../../base/secret.ts';
import { type BlobOwner, SealError, seal } from '../../crypto/secrets/sealing.ts';
import type { SecretsContext } from '../contexts.ts';
import { currentKey, openFor } from '../sealed-secrets.ts';
import type { SignInChecks } from './oidc-provider.ts';

/** How long a person may take at the provider, in milliseconds. */
export const pendingLifetime = 10 * minute;

/** A sealed sign-in has about 400 characters. */
const maxLength = 2000;

/** What is sealed; one is never accepted in place of another. */
export type SealedKind = 'sign-in' | 'test' | 'test result' | `device sign-in ${string}`;

/** What a sign-in needs in order to be finished. */
export type PendingChecks = Omit<SignInChecks, 'state'> & {
  /** The provider that it began with. */
  readonly issuer: string;
  readonly clientId: string;
  /** UTC milliseconds. */
  readonly expiresAt: number;
};

export type PendingSignIn = PendingChecks & SignInChecks;

/** The value, as JSON, sealed with the current master key. */
export async function sealJson(vault: SecretsContext, kind: SealedKind, value: unknown): Promise<Buffer> {
  const plaintext = new Secret(Buffer.from(JSON.stringify(value)));
  return seal(await currentKey(vault, vault.db.reader), vault.world, ownerOf(kind), plaintext);
}

/** What `sealJson` sealed as this kind; undefined if it is not from this vault or was changed. */
export function openJson<T>(vault: SecretsContext, kind: SealedKind, blob: Buffer): T | undefined {
  try {
    return JSON.parse(openFor(vault, ownerOf(kind), blob).expose().toString());
  } catch (error) {
    if (error instanceof SealError) return undefined;
    throw error;
  }
}

/** The sign-in in this text, which is base64url; undefined if it is not from this vault, was changed or has expired. */
export function openPending<T extends PendingChecks>(
  vault: SecretsContext,
  kind: 'sign-in' | 'test',
  text: string,
): T | undefined {
  if (text.length > maxLength) return undefined;
  const pending = openJson<T>(vault, kind, Buffer.from(text, 'base64url'));
  return pending !== undefined && vault.world.now() < pending.expiresAt ? pending : undefined;
}

function ownerOf(kind: SealedKind): BlobOwner {
  return { table: 'oidc', record: kind, purpose: 'seal: oidc sign-in' };
}
