/** Confines API keys that sign to their profiles; refusals go into the audit log, as those of scopes do. */
import { Problem } from '../../base/problem.ts';
import { requireProfileWithin } from '../../domain/access/profile-confinement.ts';
import type { Call } from '../request/route.ts';

/** Runs `sign` with a check of the certificate's profile, and records it if the check refuses the caller. */
export async function confinedToProfiles<T>(
  {
    context: { vault, keyLimits },
    identity,
    actor,
    path,
  }: Pick<Call, 'context' | 'identity' | 'actor' | 'path'>,
  sign: (check: (profile: string | undefined) => void) => Promise<T>,
): Promise<T> {
  if (identity?.kind !== 'api-key') return sign(() => undefined);
  try {
    return await sign((profile) => requireProfileWithin(identity.profiles, profile));
  } catch (error) {
    if (error instanceof Problem && error.code === 'forbidden') {
      const detail = { code: 'forbidden', scope: 'certificates:sign', reason: 'profile' };
      const [subject, action] = [`api-key:${identity.id}`, 'access.refuse'] as const;
      await vault.refusals.record({ actor, action, subject, target: `POST ${path}`, detail }, keyLimits);
    }
    throw error;
  }
}
