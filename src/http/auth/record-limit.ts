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
  method: 'GET' | 'POST',
): Promise<never> | undefined {
  const { context, identity } = call;
  if (identity?.kind !== 'api-key') return undefined;
  const excess = context.keyLimits.recordExcessOf(identity.id);
  return excess && refuse(call, identity.id, method, excess);
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
