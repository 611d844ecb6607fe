/** Confines people and API keys to their profiles; refusals go into the audit log, as those of scopes do. */
import { Problem } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import {
  anyProfile,
  type ProfileCheck,
  requireProfileWithin,
} from '../../domain/access/profile-confinement.ts';
import type { Call, Method } from '../request/route.ts';
import { recordRefusedCall } from './recorded-refusal.ts';

type Confined = Omit<Call, 'query' | 'body'>;

/**
 * Runs `work`, which has a certificate issued, with a check of its profile; records it if the check refuses the caller.
 * `scope` is the one that allows the operation, if any.
 */
export async function confinedToProfiles<T>(
  method: Method,
  call: Confined,
  work: (check: ProfileCheck) => Promise<T>,
  scope?: Scope,
): Promise<T> {
  const { identity } = call;
  if (identity === undefined || identity.profiles === 'any') return work(anyProfile);
  try {
    return await work((profile) => requireProfileWithin(identity, profile));
  } catch (error) {
    if (error instanceof Problem && error.code === 'forbidden') {
      await recordRefusedCall(method, call, identity, { ...(scope && { scope }), reason: 'profile' });
    }
    throw error;
  }
}
