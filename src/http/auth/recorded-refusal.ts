/** Refusals that only the handler of a route can decide on: recorded before the response, like those of access.ts. */
import { Problem } from '../../base/problem.ts';
import type { Identity } from '../../domain/access/identity.ts';
import type { Call, Method } from '../request/route.ts';

/** Runs the check, and records it with `reason` if it throws. Throws what the check throws. */
export async function recordRefused(
  method: Method,
  call: Omit<Call, 'query' | 'body'>,
  reason: string,
  check: (identity: Identity) => void | Promise<void>,
): Promise<void> {
  const { identity } = call;
  if (identity === undefined) throw new Problem('unauthenticated');
  try {
    await check(identity);
  } catch (error) {
    if (!(error instanceof Problem && error.code === 'forbidden')) throw error;
    await recordRefusedCall(method, call, identity, { reason });
    throw error;
  }
}

/** Records that the caller was refused, with these facts. */
export async function recordRefusedCall(
  method: Method,
  { context: { vault, keyLimits }, actor, path }: Pick<Call, 'context' | 'actor' | 'path'>,
  identity: Identity,
  facts: Readonly<Record<string, string>>,
): Promise<void> {
  const subject = identity.kind === 'api-key' ? `api-key:${identity.id}` : `administrator:${identity.name}`;
  const detail = { code: 'forbidden', ...facts };
  const refusal = { actor, action: 'access.refuse', subject, target: `${method} ${path}`, detail } as const;
  await vault.refusals.record(refusal, keyLimits);
}
