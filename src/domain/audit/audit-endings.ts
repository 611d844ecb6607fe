/** What an audit event ended permanently: an older row of it that is put back into the database still has its valid tag. */
import type { AuditEventRow } from '../../db/audit/audit-events.ts';

/** After these, the key or session that they name never counts again. */
const endings: ReadonlySet<string> = new Set(['api_key.revoke', 'api_key.delete', 'session.end']);

/** The resource that the event ended: a key, a session, or the secret of a key that a rotation replaced. */
export function endedBy({ action, resource, detail }: AuditEventRow): string | undefined {
  if (endings.has(action)) return resource;
  if (action !== 'api_key.rotate') return undefined;
  const prefix = /"previous_prefix":"(vk_[\w-]{12})"/.exec(detail)?.[1];
  return prefix === undefined ? undefined : currentSecret(resource, prefix);
}

/** The current secret of a key, as a resource. */
export function currentSecret(resource: string, prefix: string): string {
  return `${resource} with the secret ${prefix}…`;
}
