/** Holds back a change that a second administrator has to approve, and lets it through once it is approved. */
import { Problem } from '../../base/problem.ts';
import { sha256 } from '../../base/sha256.ts';
import { returnApproval, takeApproval } from '../../domain/approvals/pending-changes.ts';
import type { Reply } from '../request/reply.ts';
import type { Call, Route } from '../request/route.ts';
import { roleFor } from './operation-roles.ts';

/** Runs the handler of a route, with the approval of a second administrator where the change needs one. */
export async function handleApproved(route: Route, call: Call): Promise<Reply> {
  const { vault } = call.context;
  const summary = await route.approval?.(call);
  if (summary === undefined) return route.handle(call);
  const id = await takeApproval(vault, call.actor, {
    operation: route.id,
    summary,
    // With the summary, so that what it says still holds when the approval is used. Secrets are not part of the JSON.
    digest: sha256(JSON.stringify([route.id, call.target, call.body ?? null, summary])),
    role: roleFor(route.id),
  });
  try {
    return await route.handle(call);
  } catch (error) {
    await returnApproval(vault, call.actor, id, error instanceof Problem ? error.code : 'internal');
    throw error;
  }
}
