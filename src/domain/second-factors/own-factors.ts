/** The second factors of one administrator, checked against what the vault recorded of them. */
import { requireIntegrity } from '../../base/integrity.ts';
import { Problem } from '../../base/problem.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { type Factors, factorsFit, readFactors, recordFactors } from '../../db/audit/factor-digest.ts';
import { administratorFits } from '../../db/audit/row-tags.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { type AdministratorRow, findAdministrator } from '../../db/tables/access/administrators.ts';
import type { PasskeyRow } from '../../db/tables/access/passkeys.ts';
import { deleteOtherSessions } from '../../db/tables/access/sessions.ts';
import type { AdministratorIdentity } from '../access/identity.ts';
import { recordEndedSessions } from '../access/sessions.ts';
import { type Actor, type AuditAction, record } from '../audit/audit.ts';
import type { DatabaseContext, LogContext } from '../contexts.ts';

export type Person = { readonly row: AdministratorRow; readonly factors: Factors };

/** A passkey as its owner sees it. */
export type PasskeyView = {
  id: number;
  name: string;
  created_at: string;
  last_used_at: string | null;
};

/** The second factors of a person as they see them; never a secret. */
export type FactorsView = {
  passkeys: PasskeyView[];
  totp: { created_at: string; last_used_at: string | null } | null;
  /** How many are left. */
  recovery_codes: number;
};

/** The person with this name; undefined if unknown, or if the rows were modified outside the vault, which is logged. */
export async function findPerson(
  { db, log }: DatabaseContext & LogContext,
  reader: Reader,
  name: string,
): Promise<Person | undefined> {
  const row = await findAdministrator(reader, name);
  if (row === undefined) return undefined;
  const factors = await readFactors(reader, row.id);
  if (administratorFits(requireIntegrity(db), row) && factorsFit(row, factors)) return { row, factors };
  const fields = { administrator: row.name };
  log.error(fields, 'administrator refused: database rows were modified outside the vault');
  return undefined;
}

/**
 * The signed-in person, who manages only their own factors. Throws `oidc_administrator`, `administrator_not_found`, and
 * `forbidden` if the factors were modified outside the vault.
 */
export async function requireOwn(
  vault: DatabaseContext & LogContext,
  reader: Reader,
  { name, signIn, session }: AdministratorIdentity,
): Promise<Person> {
  if (signIn === 'oidc') {
    throw new Problem('oidc_administrator', {
      detail: 'You sign in by OpenID Connect; the identity provider asks for second factors.',
    });
  }
  const person = await findPerson(vault, reader, name);
  if (person?.row.id === session.administratorId) return person;
  if ((await findAdministrator(reader, name)) === undefined) throw new Problem('administrator_not_found');
  throw new Problem('forbidden', {
    detail: 'Your second factors were modified outside the vault.',
    hint: 'On the vault\'s host, run "vault admin reset-password".',
  });
}

export async function viewFactors(
  vault: DatabaseContext & LogContext,
  identity: AdministratorIdentity,
): Promise<FactorsView> {
  const { factors } = await requireOwn(vault, vault.db.reader, identity);
  const { passkeys, app, recoveryCodes } = factors;
  return {
    passkeys: passkeys.map(passkeyView),
    totp: app
      ? { created_at: formatTimestamp(app.created_at), last_used_at: formatTimestampOrNull(app.last_used_at) }
      : null,
    recovery_codes: recoveryCodes.length,
  };
}

export function passkeyView({ id, name, created_at, last_used_at }: PasskeyRow): PasskeyView {
  return {
    id,
    name,
    created_at: formatTimestamp(created_at),
    last_used_at: formatTimestampOrNull(last_used_at),
  };
}

/** What changed, for the audit log. */
export type FactorChange = {
  readonly action: AuditAction;
  readonly detail?: Readonly<Record<string, unknown>>;
  readonly now: number;
};

/**
 * Records the factors that a person has now, in the transaction that changed them. With their first factor, their
 * sessions that began without one end, except the current.
 */
export async function recordOwnChange(
  writer: Writer,
  actor: Actor,
  { row }: Person,
  { session }: AdministratorIdentity,
  { action, detail = {}, now }: FactorChange,
): Promise<Factors> {
  const factors = await recordFactors(writer, row.id);
  if (row.factors === null) {
    const ended = await deleteOtherSessions(writer, row.id, session.id);
    recordEndedSessions(writer, actor, ended, { how: 'second factor set up', now });
  }
  record(writer, { actor, action, resource: `administrator:${row.name}`, detail }, now);
  return factors;
}

/** Throws `last_second_factor` if the vault requires one and this change leaves none. */
export function refuseTheLastFactor(
  { passkeys, app }: Pick<Factors, 'passkeys' | 'app'>,
  isRequired: boolean,
): void {
  if (isRequired && passkeys.length === 0 && app === undefined) throw new Problem('last_second_factor');
}
