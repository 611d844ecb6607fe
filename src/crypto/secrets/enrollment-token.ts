/**
 * The raw value of an enrollment token: `ve_<12 characters>.<43 characters>`, built and stored like an API key
 * (api-key-token.ts), with another beginning, so that neither is taken for the other.
 */
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import { type ApiKeyToken, createTokenOf, readTokenOf } from './api-key-token.ts';

const beginning = 've_';

export type EnrollmentToken = ApiKeyToken;

/** A new raw value, to be shown once, with its stored form. */
export function createEnrollmentToken(world: World): EnrollmentToken & { raw: Secret<string> } {
  return createTokenOf(world, beginning);
}

/** Prefix and hash of a raw value, or undefined if the text does not have that form. */
export function readEnrollmentToken(raw: string): EnrollmentToken | undefined {
  return readTokenOf(raw, beginning);
}
