/** Where the settings require a second factor, people without one can set it up, and nothing else. */
import { Problem } from '../../base/problem.ts';
import type { AdministratorIdentity } from '../../domain/access/identity.ts';
import type { ServerContext } from '../request/server-context.ts';
import type { Guarded } from './operation-roles.ts';

/** Whether this person must set up a second factor first. Identity providers ask for their own. */
export function mustEnroll(
  { requireSecondFactor }: Pick<ServerContext, 'requireSecondFactor'>,
  { signIn, hasSecondFactor }: AdministratorIdentity,
): boolean {
  return requireSecondFactor && signIn === 'password' && !hasSecondFactor;
}

/** Throws `second_factor_required` for a route that is not about the session or setting up a second factor. */
export function requireEnrolled(
  context: ServerContext,
  access: Guarded,
  identity: AdministratorIdentity,
): void {
  const isOpen =
    access.kind === 'session' || (access.kind === 'administrator' && access.isEnrolment === true);
  if (!isOpen && mustEnroll(context, identity)) throw new Problem('second_factor_required');
}
