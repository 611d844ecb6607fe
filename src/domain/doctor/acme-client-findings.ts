/** ACME clients that will fail to order: they expire soon, or an issuer or profile that they name is gone. */
import { day } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { type ListedAcmeClientRow, listAcmeClientRows } from '../../db/tables/acme-server/acme-clients.ts';
import { listIssuers } from '../../db/tables/issuance/issuers.ts';
import type { TimedContext } from '../contexts.ts';
import type { Finding } from './finding.ts';

const check = 'acme-client';

/** How long before their expiry clients are reported, and for how long afterwards. */
const notice = 14 * day;
const memory = 30 * day;

/** The most findings about clients. */
const maxFindings = 10;

/** Nothing in a vault without ACME clients. */
export async function acmeClientFindings({ db, world }: TimedContext): Promise<Finding[]> {
  const rows = await listAcmeClientRows(db.reader);
  const clients = rows.filter(({ revoked_at }) => revoked_at === null);
  if (clients.length === 0) return [];
  const issuers = new Set((await listIssuers(db.reader)).map(({ name }) => name));
  const all = clients.flatMap((row) => [...expiryOf(row, world.now()), ...missingIssuers(row, issuers)]);
  if (all.length === 0) {
    const message = `none of ${clients.length} expires within two weeks, and all have their issuers`;
    return [{ check, status: 'ok', message }];
  }
  const findings = all.slice(0, maxFindings);
  const rest = all.length - findings.length;
  if (rest > 0) {
    const message = `${rest} more findings about ACME clients`;
    findings.push({ check, status: 'warning', message, hint: 'Try: vault acme-client list' });
  }
  return findings;
}

function expiryOf({ id, name, expires_at: end }: ListedAcmeClientRow, now: number): Finding[] {
  if (end === null || end >= now + notice || end <= now - memory) return [];
  const message = `ACME client ${id} (${name}) ${end <= now ? 'expired' : 'expires'} on ${formatTimestamp(end)}`;
  const hint = `Extend it, or revoke it if no program uses it.\nTry: vault acme-client update ${id} --expires-at 90d`;
  return [{ check, status: 'warning', about: name, message, hint }];
}

function missingIssuers(row: ListedAcmeClientRow, known: ReadonlySet<string>): Finding[] {
  const { id, name } = row;
  const missing = parseJson(row.issuers).filter((issuer) => !known.has(issuer));
  if (missing.length === 0) return [];
  const message = `ACME client ${id} (${name}) names issuers that do not exist: ${missing.join(', ')}`;
  const hint = `An issuer that gets such a name would issue for the client.\nTry: vault acme-client update ${id} --issuer NAME`;
  return [{ check, status: 'warning', about: name, message, hint }];
}
