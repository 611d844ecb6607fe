/** Holds back a change that a second administrator has to approve, and lets it through once it is approved. */
import { Problem } from '../../base/problem.ts';
import { sha256 } from '../../base/sha256.ts';
import { returnApproval, useApproval } from '../../domain/approvals/pending-changes.ts';
import type { Reply } from '../request/reply.ts';
import type { Call, Route } from '../request/route.ts';
import { roleFor } from './operation-roles.ts';

/** Runs the handler of a route, with the approval of a second administrator where the change needs one. */
export async function handleApproved(route: Route, call: Call): Promise<Reply> {
  const { vault } = call.context;
  const summary = await route.approval?.(call);
  if (summary === undefined) return route.handle(call);
  const id = await useApproval(vault, call.actor, {
    operation: route.id,
    summary,
    // Secrets in a body are not part of its JSON.
    digest: sha256(JSON.stringify([route.id, call.target, call.body ?? null])),
    role: roleFor(route.id),
  });
  try {
    return await route.handle(call);
  } catch (error) {
    await returnApproval(vault, call.actor, id, error instanceof Problem ? error.code : 'internal');
    throw error;
  }
}
