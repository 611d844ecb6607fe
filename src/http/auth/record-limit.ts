/** Limits requests that add audit events: a stolen key must not fill the disk. */
import type { Problem } from '../../base/problem.ts';
import type { Call } from '../request/route.ts';

type RecordedCall = Pick<Call, 'context' | 'identity' | 'actor' | 'path'>;

/**
 * Counts a request before it is recorded; undefined if it may proceed, otherwise a promise that rejects with
 * `rate_limited`. Administrators have no such limit.
 */
export function requireRecordAllowance(
  call: RecordedCall,
  method: 'GET' | 'POST' | 'PUT' | 'DELETE',
): Promise<never> | undefined {
  const { context, identity } = call;
  if (identity?.kind !== 'api-key') return undefined;
  const excess = context.keyLimits.recordExcessOf(identity.id);
  return excess && refuse(call, identity.id, method, excess);
}

/**
 * Runs a request for a renewal with a function that counts it, which throws `rate_limited` after too many of one
 * certificate. Call it where the request is about to add or replace a renewal: to ask again for the open one costs
 * nothing. Administrators have no such limit.
 */
export async function withRenewalAllowance<T>(
  call: RecordedCall,
  request: (count: (certificateId: number) => void) => Promise<T>,
): Promise<T> {
  const { context, identity } = call;
  if (identity?.kind !== 'api-key') return request(() => undefined);
  let counted: { readonly excess: Problem | undefined } | undefined;
  try {
    return await request((certificateId) => {
      // A database server may run a transaction again.
      counted ??= { excess: context.keyLimits.renewalExcessOf(identity.id, certificateId) };
      if (counted.excess !== undefined) throw counted.excess;
    });
  } catch (error) {
    if (counted?.excess === undefined || error !== counted.excess) throw error;
    return refuse(call, identity.id, 'POST', counted.excess);
  }
}

async function refuse(
  { context, actor, path }: RecordedCall,
  id: number,
  method: string,
  excess: Problem,
): Promise<never> {
  const { keyLimits, vault } = context;
  if (keyLimits.isFirstReport(id)) {
    const detail = { code: excess.code };
    const [action, target] = ['access.refuse', `${method} ${path}`.slice(0, 300)] as const;
    await vault.refusals.record({ actor, action, subject: `api-key:${id}`, target, detail }, keyLimits);
  }
  throw excess;
}
