/**
 * The raw value of an API key: `vk_<12 characters>.<43 characters>`, a public prefix to find the key by and 256 random
 * bits. The vault stores its SHA-256, which reveals nothing about a value of that entropy.
 */
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import type { World } from '../../base/world.ts';
import { sameBytes } from './constant-time.ts';

/** How a raw value begins. */
type Beginning = 'vk_' | 've_';

const pattern = /^v[ek]_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}$/;
const prefixLength = 'vk_'.length + 12;

export type ApiKeyToken = {
  /** The beginning and 12 characters; public, unique. */
  readonly prefix: string;
  /** SHA-256 of the complete raw value. */
  readonly hash: Buffer;
};

/** A new raw value, to be shown once, with its stored form. */
export function createToken(world: World): ApiKeyToken & { raw: Secret<string> } {
  return createTokenOf(world, 'vk_');
}

/** `createToken` for a raw value that begins in this way. */
export function createTokenOf(world: World, beginning: Beginning): ApiKeyToken & { raw: Secret<string> } {
  const prefix = `${beginning}${world.randomBytes(9).toString('base64url')}`;
  const raw = `${prefix}.${world.randomBytes(32).toString('base64url')}`;
  return { prefix, hash: sha256(raw), raw: new Secret(raw) };
}

/** Prefix and hash of a raw value, or undefined if the text does not have that form. */
export function readToken(raw: string): ApiKeyToken | undefined {
  return readTokenOf(raw, 'vk_');
}

/** `readToken` for a raw value that begins in this way. */
export function readTokenOf(raw: string, beginning: Beginning): ApiKeyToken | undefined {
  if (!raw.startsWith(beginning) || !pattern.test(raw)) return undefined;
  return { prefix: raw.slice(0, prefixLength), hash: sha256(raw) };
}

const unknownHash = Buffer.alloc(32);

/**
 * Whether the presented token is the one whose hash is stored, in constant time. An unknown key (`kept` undefined)
 * takes the same path as a wrong secret.
 */
export function tokenMatches(presented: ApiKeyToken, kept: Buffer | undefined): boolean {
  return sameBytes(presented.hash, kept ?? unknownHash) && kept !== undefined;
}
