/**
 * Changes that need the approval of a second administrator: the first request is refused and waits as a pending change,
 * another administrator approves it, and the same request by the same caller then goes through, once.
 */
import { day } from '../../base/duration.ts';
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import type { Role } from '../../base/role.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { World } from '../../base/world.ts';
import { pendingChangeFits } from '../../db/audit/pending-change-tags.ts';
import type { Writer } from '../../db/database.ts';
import {
  clearApplied,
  countWaiting,
  deleteChangesBefore,
  findPendingChange,
  insertPendingChange,
  openChangesOf,
  type PendingChangeRow,
  pagePendingChanges,
  setApplied,
  setDecision,
} from '../../db/tables/access/pending-changes.ts';
import { type AdministratorIdentity, requireRole } from '../access/identity.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import { notify } from '../notifications/notification-queue.ts';

/** How long a change waits for its approval, and how long an approval can be used, in milliseconds. */
const openFor = day;

/** How long changes are listed after they have expired. */
const listedFor = 30 * day;

/** Changes of one caller that wait for a decision. */
const maxWaiting = 100;

/** A request that needs an approval. */
export type ChangeRequest = {
  /** The id of the operation. */
  readonly operation: string;
  /** What it changes, in a sentence for people. */
  readonly summary: string;
  /** SHA-256 over all that the request says. */
  readonly digest: Buffer;
  /** The role that the operation needs. */
  readonly role: Role;
};

export const changeStates = ['pending', 'approved', 'rejected', 'applied', 'expired'] as const;

export type PendingChangeView = {
  id: number;
  operation: string;
  summary: string;
  state: (typeof changeStates)[number];
  /** The role that the operation, and so its approval, needs. */
  role: Role;
  requested_by: string;
  requested_at: string;
  expires_at: string;
  decided_by: string | null;
  decided_at: string | null;
  applied_at: string | null;
};

/**
 * Uses up the approval of this request and returns its id. Throws `approval_required` for a request without one, which
 * waits from then on, and `rate_limited` if too many wait.
 */
export async function takeApproval(
  { db, world }: TimedContext,
  actor: Actor,
  request: ChangeRequest,
): Promise<number> {
  const found = await db.write(async (writer) => {
    const now = world.now();
    const open = await openChangesOf(writer, { requested_by: actor.name, digest: request.digest }, now);
    const integrity = requireIntegrity(writer);
    const [newest] = open.filter((row) => pendingChangeFits(integrity, row));
    if (newest === undefined) return begin(world, writer, actor, request);
    if (newest.decision !== 'approved' || !(await setApplied(writer, newest.id, now))) return newest;
    recordChange(writer, actor, newest, { approved_by: newest.decided_by }, 'apply', now);
    return newest.id;
  });
  if (typeof found === 'number') return found;
  throw new Problem('approval_required', {
    detail: `A second administrator has to approve this: ${found.summary}.`,
    hint: `It waits as pending change ${found.id} until ${formatTimestamp(found.expires_at)}. Repeat the request after the approval.`,
  });
}

/** Makes the approval usable again, because the change failed with `code`. */
export async function returnApproval(
  { db, world }: TimedContext,
  actor: Actor,
  id: number,
  code: string,
): Promise<void> {
  await db.write(async (writer) => {
    const row = await requirePendingChange(writer, id);
    await clearApplied(writer, id);
    recordChange(writer, actor, row, { code }, 'return', world.now());
  });
}

/** A page of all changes, newest first: at most `limit` with ids below `before`. */
export async function viewPendingChanges(
  { db, world }: TimedContext,
  {
    before = Number.MAX_SAFE_INTEGER,
    limit,
  }: { readonly before?: number | undefined; readonly limit: number },
): Promise<PendingChangeView[]> {
  const rows = await pagePendingChanges(db.reader, { before, limit });
  return rows.map((row) => pendingChangeView(row, world.now()));
}

/**
 * Approves or rejects a change. Throws `pending_change_not_found`; `pending_change_closed` if it is decided or has
 * expired; and `forbidden` without the role that the change needs, or for an approval of one's own.
 */
export async function decide(
  { db, world }: TimedContext,
  person: AdministratorIdentity,
  actor: Actor,
  id: number,
  decision: 'approved' | 'rejected',
): Promise<PendingChangeView> {
  return db.write(async (writer) => {
    const now = world.now();
    const found = await requirePendingChange(writer, id);
    requireRole(person, found.role);
    if (decision === 'approved' && found.requested_by === actor.name) throw ownRequest();
    const row =
      found.expires_at > now
        ? await setDecision(writer, id, {
            decision,
            decided_by: actor.name,
            decided_at: now,
            expires_at: decision === 'approved' ? now + openFor : found.expires_at,
          })
        : undefined;
    if (row === undefined) throw new Problem('pending_change_closed');
    const verb = decision === 'approved' ? 'approve' : 'reject';
    recordChange(writer, actor, row, { requested_by: row.requested_by }, verb, now);
    return pendingChangeView(row, now);
  });
}

async function begin(
  world: World,
  writer: Writer,
  actor: Actor,
  request: ChangeRequest,
): Promise<PendingChangeRow> {
  const now = world.now();
  await deleteChangesBefore(writer, now - listedFor);
  if ((await countWaiting(writer, actor.name, now)) >= maxWaiting) {
    throw new Problem('rate_limited', {
      detail: `${maxWaiting} of your changes are waiting for approval.`,
      hint: 'Have them approved or rejected first.',
      retryAfter: openFor / 1000,
    });
  }
  const row = await insertPendingChange(writer, {
    ...request,
    requested_by: actor.name,
    requested_at: now,
    expires_at: now + openFor,
  });
  const expires_at = formatTimestamp(row.expires_at);
  recordChange(writer, actor, row, { expires_at }, 'create', now);
  const { id, summary, role, requested_by } = row;
  await notify(world, writer, {
    event: 'pending_change.created',
    about: summary,
    certificates: null,
    data: { pending_change: id, summary, role, requested_by, expires_at },
  });
  return row;
}

function recordChange(
  writer: Writer,
  actor: Actor,
  { id, operation, summary }: PendingChangeRow,
  detail: Readonly<Record<string, unknown>>,
  what: 'create' | 'approve' | 'reject' | 'apply' | 'return',
  now: number,
): void {
  const event = { actor, action: `pending_change.${what}`, resource: `pending-change:${id}` } as const;
  record(writer, { ...event, detail: { operation, summary, ...detail } }, now);
}

/** Throws `pending_change_not_found`, also for a row that was modified outside the vault. */
async function requirePendingChange(writer: Writer, id: number): Promise<PendingChangeRow> {
  const row = await findPendingChange(writer, id);
  if (row !== undefined && pendingChangeFits(requireIntegrity(writer), row)) return row;
  throw new Problem('pending_change_not_found');
}

function ownRequest(): Problem {
  return new Problem('forbidden', {
    detail: 'You requested this change yourself; another administrator has to approve it.',
    hint: 'To create another administrator, run "vault admin create" on the vault\'s host.',
  });
}

function pendingChangeView(row: PendingChangeRow, now: number): PendingChangeView {
  return {
    id: row.id,
    operation: row.operation,
    summary: row.summary,
    state: stateOf(row, now),
    role: row.role,
    requested_by: row.requested_by,
    requested_at: formatTimestamp(row.requested_at),
    expires_at: formatTimestamp(row.expires_at),
    decided_by: row.decided_by,
    decided_at: formatTimestampOrNull(row.decided_at),
    applied_at: formatTimestampOrNull(row.applied_at),
  };
}

function stateOf(
  { applied_at, decision, expires_at }: PendingChangeRow,
  now: number,
): PendingChangeView['state'] {
  if (applied_at !== null) return 'applied';
  if (decision === 'rejected') return 'rejected';
  if (expires_at <= now) return 'expired';
  return decision ?? 'pending';
}
