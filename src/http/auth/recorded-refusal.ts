/** Refusals that only the handler of a route can decide on: recorded before the response, like those of access.ts. */
import { Problem } from '../../base/problem.ts';
import type { Identity } from '../../domain/access/identity.ts';
import type { Call, Method } from '../request/route.ts';

/** Runs the check, and records it with `reason` if it throws. Throws what the check throws. */
export async function recordRefused(
  method: Method,
  { context: { vault, keyLimits }, identity, actor, path }: Omit<Call, 'query' | 'body'>,
  reason: string,
  check: (identity: Identity) => void | Promise<void>,
): Promise<void> {
  if (identity === undefined) throw new Problem('unauthenticated');
  try {
    await check(identity);
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'forbidden')) throw error;
    const subject = identity.kind === 'api-key' ? `api-key:${identity.id}` : `administrator:${identity.name}`;
    const detail = { code: 'forbidden', reason };
    const refusal = { actor, action: 'access.refuse', subject, target: `${method} ${path}`, detail } as const;
    await vault.refusals.record(refusal, keyLimits);
    throw error;
  }
}
