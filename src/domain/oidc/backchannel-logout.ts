/**
 * Ends sessions because the identity provider says so (OpenID Connect Back-Channel Logout 1.0). Each logout token works
 * once.
 */
import { sha256 } from '../../base/sha256.ts';
import type { Writer } from '../../db/database.ts';
import { findOidcAdministrator } from '../../db/tables/access/administrators.ts';
import { insertOidcUse } from '../../db/tables/access/oidc-uses.ts';
import { deleteSession, listOidcSessions, listSessions } from '../../db/tables/access/sessions.ts';
import { recordEndedSessions } from '../access/sessions.ts';
import type { Actor } from '../audit/audit.ts';
import type { TimedContext } from '../contexts.ts';
import type { Logout, OidcProvider } from './oidc-provider.ts';
import { OidcRefusal } from './refusal.ts';

/** How many sessions of one session at the provider end at most. */
const maxEnded = 100;

/** Ends the sessions of a logout token, and returns how many. Throws OidcRefusal if the token is not valid. */
export async function logOutByProvider(
  { db, world }: TimedContext,
  provider: OidcProvider,
  actor: Actor,
  token: string,
): Promise<number> {
  const logout = await provider.readLogout(token);
  const { issuer } = provider.settings;
  return db.write(async (writer) => {
    const now = world.now();
    const { expiresAt } = logout;
    if (!(await insertOidcUse(writer, sha256(`logout ${issuer} ${logout.jti}`), { now, expiresAt }))) {
      throw new OidcRefusal('invalid', 'logout token used before');
    }
    const ids = await sessionsOf(writer, issuer, logout);
    for (const id of ids) await deleteSession(writer, id);
    recordEndedSessions(writer, { ...actor, name: 'system' }, ids, {
      how: 'signed out at the provider',
      now,
    });
    return ids.length;
  });
}

async function sessionsOf(writer: Writer, issuer: string, { sid, subject }: Logout): Promise<number[]> {
  if (subject === undefined) {
    return sid === undefined ? [] : listOidcSessions(writer, { issuer, sid }, maxEnded);
  }
  const person = await findOidcAdministrator(writer, { issuer, subject });
  if (person === undefined) return [];
  const sessions = await listSessions(writer, person.id);
  return sessions.filter(({ oidc_sid }) => sid === undefined || oidc_sid === sid).map(({ id }) => id);
}
