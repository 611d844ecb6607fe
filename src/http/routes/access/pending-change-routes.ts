/** Changes that wait for the approval of a second administrator: list, approve and reject. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { roles } from '../../../base/role.ts';
import { sessionNeeded } from '../../../domain/access/identity.ts';
import {
  changeStates,
  decide,
  type PendingChangeView,
  viewPendingChanges,
} from '../../../domain/approvals/pending-changes.ts';
import { digits, limit, noQuery, time } from '../../openapi/schemas.ts';
import { json, type Reply } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const pendingChangeSchema = z
  .strictObject({
    id: z.int(),
    operation: z.string().describe('the id of the operation in this document'),
    summary: z.string().describe('what it changes, for people'),
    state: z.enum(changeStates),
    role: z.enum(roles).describe('the role that the change and its approval need'),
    requested_by: z.string().describe('admin:<name> or api-key:<id>:<name>'),
    requested_at: time,
    expires_at: time.describe('24 hours after the request, and after the approval'),
    decided_by: z.string().nullable(),
    decided_at: time.nullable(),
    applied_at: time.nullable().describe('when the approval was used; it can be used once'),
  })
  .meta({ id: 'PendingChange' }) satisfies z.ZodType<PendingChangeView>;

const personal = { kind: 'administrator', isPersonal: true } as const;
const replies = { 200: { description: 'the decided change', schema: pendingChangeSchema } };
const problems = ['pending_change_not_found', 'pending_change_closed'] as const;

export const pendingChangeRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/pending-changes',
    id: 'listPendingChanges',
    summary: 'List changes that need the approval of a second administrator, newest first, for 30 days',
    access: { kind: 'administrator' },
    query: z.strictObject({
      limit,
      after: digits(z.int().min(1)).optional().describe('return changes before this id'),
    }),
    replies: { 200: { description: 'a page', schema: z.array(pendingChangeSchema), headers: ['Link'] } },
    problems: [],
    handle: async ({ context: { vault }, ...call }) => {
      const page = { before: call.query.after, limit: call.query.limit + 1 };
      return pageReply(
        [await viewPendingChanges(vault, page)],
        call,
        (change) => change,
        ({ id }) => id,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/pending-changes/{id}/approve',
    id: 'approvePendingChange',
    summary: "Approve someone else's change; they may then repeat the request once",
    access: personal,
    query: noQuery,
    replies,
    problems,
    handle: (call) => decided(call, 'approved'),
  }),
  route({
    method: 'POST',
    path: '/api/v1/pending-changes/{id}/reject',
    id: 'rejectPendingChange',
    summary: 'Reject a change, or withdraw one of your own',
    access: personal,
    query: noQuery,
    replies,
    problems,
    handle: (call) => decided(call, 'rejected'),
  }),
];

async function decided(
  { context: { vault }, identity, actor, params: { id = '' } }: Omit<Call, 'query' | 'body'>,
  decision: 'approved' | 'rejected',
): Promise<Reply> {
  if (identity?.kind !== 'administrator') throw sessionNeeded();
  if (!/^[1-9]\d{0,14}$/.test(id)) throw new Problem('pending_change_not_found');
  return json(200, await decide(vault, identity, actor, Number(id), decision));
}
