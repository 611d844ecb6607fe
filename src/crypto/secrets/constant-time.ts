/** The only place where presented values are compared with secrets, so that the time reveals nothing about them. */
import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';

/** Whether the bytes are equal. The time reveals only their lengths, which are not secret. */
export function sameBytes(presented: Buffer, kept: Buffer): boolean {
  return presented.length === kept.length && timingSafeEqual(presented, kept);
}

/** Whether the secrets are equal, compared as in `sameBytes`. */
export function sameSecrets(one: Secret, other: Secret): boolean {
  return sameBytes(one.expose(), other.expose());
}
