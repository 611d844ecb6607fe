/** Clears the second factors of another person, who has lost them. */
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import { clearFactors, factorCounts } from '../../db/audit/factor-digest.ts';
import { administratorFits } from '../../db/audit/row-tags.ts';
import { findAdministrator } from '../../db/tables/access/administrators.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import { requireAdministrator } from '../access/administrators.ts';
import type { Identity } from '../access/identity.ts';
import { recordEndedSessions } from '../access/sessions.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';

/**
 * Removes all second factors of this administrator and ends their sessions: the password is enough for their next
 * sign-in. Throws `administrator_not_found`, `oidc_administrator`, `second_factor_not_found` without any, and
 * `forbidden` for one's own.
 */
export async function clearFactorsOf(
  { db, world }: TimedContext,
  actor: Actor,
  identity: Identity | undefined,
  name: string,
): Promise<void> {
  await db.write(async (writer) => {
    const row = await requireAdministrator(writer, name);
    if (row.oidc_subject !== null) throw new Problem('oidc_administrator');
    if (identity?.kind === 'administrator' && identity.session.administratorId === row.id) {
      throw new Problem('forbidden', {
        detail: 'Your own second factors are removed one by one, with your password.',
      });
    }
    const found = await findAdministrator(writer, name);
    if (found === undefined || !administratorFits(requireIntegrity(writer), found)) {
      throw new Problem('forbidden', {
        detail: 'This administrator was modified outside the vault.',
        hint: 'On the vault\'s host, run "vault admin reset-password".',
      });
    }
    if (row.factors === null) throw new Problem('second_factor_not_found');
    const cleared = factorCounts(await clearFactors(writer, row.id));
    const ended = await deleteOtherSessions(writer, row.id, undefined);
    const now = world.now();
    recordEndedSessions(writer, actor, ended, { how: 'second factors cleared', now });
    const detail = { ...cleared, sessions_ended: ended.length };
    const resource = `administrator:${row.name}`;
    record(writer, { actor, action: 'administrator.factors_clear', resource, detail }, now);
  });
}
