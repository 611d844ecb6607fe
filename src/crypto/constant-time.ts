/** The one place where what somebody presents is compared with a secret, so that how long it takes says nothing about it. */
import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../base/secret.ts';

/** Whether both are the same bytes. Only their lengths, which are no secrets, can be told from the time it takes. */
export function sameBytes(presented: Buffer, kept: Buffer): boolean {
  return presented.length === kept.length && timingSafeEqual(presented, kept);
}

/** Whether both secrets are the same, as `sameBytes` has it. */
export function sameSecrets(one: Secret, other: Secret): boolean {
  return sameBytes(one.expose(), other.expose());
}
