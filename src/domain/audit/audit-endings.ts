/**
 * What an audit event ended permanently: an older row that is restored into the database still has its valid tag. For
 * the log itself, that is its beginning.
 */
import type { AuditEventRow } from '../../db/audit/audit-events.ts';

/** After these events, their key, enrollment, ACME client, administrator or session is never valid again. */
const endings: ReadonlySet<string> = new Set([
  'api_key.revoke',
  'api_key.delete',
  'enrollment.revoke',
  'enrollment.delete',
  'acme_client.revoke',
  'acme_client.delete',
  'administrator.delete',
  'session.end',
]);

/** The resource that the event ended: a key, an ACME client, a session, or a secret that a rotation replaced. */
export function endedBy({ action, resource, detail }: AuditEventRow): string | undefined {
  if (endings.has(action)) return resource;
  if (action === 'acme_client.rotate') {
    const kid = /"previous_kid":"([0-9a-f]{24})"/.exec(detail)?.[1];
    return kid === undefined ? undefined : currentClientKey(resource, kid);
  }
  if (action !== 'api_key.rotate') return undefined;
  const prefix = /"previous_prefix":"(vk_[\w-]{12})"/.exec(detail)?.[1];
  return prefix === undefined ? undefined : currentSecret(resource, prefix);
}

/** The current secret of a key, as a resource. */
export function currentSecret(resource: string, prefix: string): string {
  return `${resource} with the secret ${prefix}…`;
}

/** The current key of an ACME client, as a resource. */
export function currentClientKey(resource: string, kid: string): string {
  return `${resource} with the kid ${kid}`;
}

/** The last event that an `audit.prune` event reports as removed; a modified event may contain anything. */
export function prunedThrough({ action, detail }: AuditEventRow): number | undefined {
  if (action !== 'audit.prune') return undefined;
  const through = /"through":(\d{1,15})\b/.exec(detail)?.[1];
  return through === undefined ? undefined : Number(through);
}
