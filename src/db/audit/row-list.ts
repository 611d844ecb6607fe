/**
 * All rows that grant rights, with what their tags and the audit log say of them, for `vault audit verify` and `vault
 * doctor`.
 */
import { sql } from 'kysely';
import type { Integrity } from '../../base/integrity.ts';
import type { Reader } from '../database.ts';
import { clientAccountText } from './account-tags.ts';
import { enrollmentText } from './enrollment-tags.ts';
import { certificateLabelsText } from './label-tags.ts';
import { pendingChangeText } from './pending-change-tags.ts';
import { type Recorded, recordedLink, recordState } from './row-records.ts';
import {
  type Allowed,
  acmeClientText,
  administratorText,
  allowedPairs,
  apiKeyText,
  sessionText,
} from './row-tags.ts';

export type ListedRow = {
  /** How the audit log names it. */
  readonly resource: string;
  /** How people name it, such as `API key 3 (web)`. */
  readonly label: string;
  readonly tag: Buffer | null;
  /**
   * `forged`: the tag is not that of the row; `old`: the log records another state; `unrecorded`: the log records none.
   */
  readonly state: 'current' | 'forged' | 'old' | 'unrecorded';
  /** The current secret of a key or client that is not revoked. */
  readonly secret?: string | undefined;
  /** Not revoked. */
  readonly isLive: boolean;
  /** The newest event when the row was read. */
  readonly seen: number;
};

type Read = Recorded & { readonly id: number; readonly tag: Buffer | null; readonly seen: number };

const seen = sql<number>`(select coalesce(max(id), 0) from audit_events)`.as('seen');

/** Reads all rows. */
export async function listTaggedRows(reader: Reader, integrity: Integrity): Promise<ListedRow[]> {
  const stateOf = (row: Read, fits: boolean): Pick<ListedRow, 'tag' | 'state' | 'seen'> => {
    const state = fits ? recordState(integrity, row) : 'forged';
    return { tag: row.tag, state, seen: Number(row.seen) };
  };
  const keys = await reader
    .selectFrom('api_keys')
    .selectAll()
    .select([recordedLink('api-key', 'api_keys.id'), seen])
    .orderBy('id')
    .execute();
  // Read afterwards: a key whose allowlist changed in between is read again (`seen`).
  const allowlists = Map.groupBy(await allowedPairs(reader).execute(), ({ api_key_id }) => api_key_id);
  const clients = await reader
    .selectFrom('acme_clients')
    .selectAll()
    .select([recordedLink('acme-client', 'acme_clients.id'), seen])
    .orderBy('id')
    .execute();
  const accounts = await reader
    .selectFrom('acme_client_accounts')
    .selectAll()
    .select([recordedLink('acme-client-account', 'acme_client_accounts.id'), seen])
    .orderBy('id')
    .execute();
  const enrollments = await reader
    .selectFrom('enrollments')
    .selectAll()
    .select([recordedLink('enrollment', 'enrollments.id'), seen])
    .orderBy('id')
    .execute();
  const people = await reader
    .selectFrom('administrators')
    .selectAll()
    .select([recordedLink('administrator', 'administrators.name'), seen])
    .orderBy('id')
    .execute();
  const sessions = await reader
    .selectFrom('sessions')
    .selectAll()
    .select([recordedLink('session', 'sessions.id'), seen])
    .orderBy('id')
    .execute();
  const changes = await reader
    .selectFrom('pending_changes')
    .selectAll()
    .select([recordedLink('pending-change', 'pending_changes.id'), seen])
    .orderBy('id')
    .execute();
  const labelled = await reader
    .selectFrom('certificates')
    .select(['id', 'name', 'labels', 'labels_tag', 'labels_tag as tag'])
    .select([recordedLink('certificate', 'certificates.name'), seen])
    .where('labels', 'is not', null)
    .orderBy('id')
    .execute();
  return [
    ...keys.map((row): ListedRow => {
      const allowed = (allowlists.get(row.id) ?? []).map(({ id, name }): Allowed => [id, name]);
      const fits = integrity.fits('api key', apiKeyText(row, allowed), row.tag);
      const names = { resource: `api-key:${row.id}`, label: `API key ${row.id} (${row.name})` };
      return { ...names, ...stateOf(row, fits), secret: row.prefix, isLive: row.revoked_at === null };
    }),
    ...clients.map((row): ListedRow => {
      const fits = integrity.fits('acme client', acmeClientText(row), row.tag);
      const names = { resource: `acme-client:${row.id}`, label: `ACME client ${row.id} (${row.name})` };
      return { ...names, ...stateOf(row, fits), secret: row.kid, isLive: row.revoked_at === null };
    }),
    ...enrollments.map((row): ListedRow => {
      const fits = integrity.fits('enrollment', enrollmentText(row), row.tag);
      const names = { resource: `enrollment:${row.id}`, label: `enrollment ${row.id} (${row.name})` };
      return { ...names, ...stateOf(row, fits), isLive: row.revoked_at === null };
    }),
    ...people.map((row): ListedRow => {
      const fits = integrity.fits('administrator', administratorText(row), row.tag);
      const names = { resource: `administrator:${row.name}`, label: `administrator ${row.name}` };
      return { ...names, ...stateOf(row, fits), isLive: true };
    }),
    ...sessions.map((row): ListedRow => {
      const fits = integrity.fits('session', sessionText(row), row.tag);
      const names = { resource: `session:${row.id}`, label: `session ${row.id}` };
      return { ...names, ...stateOf(row, fits), isLive: true };
    }),
    ...accounts.map((row): ListedRow => {
      const fits = integrity.fits('acme account', clientAccountText(row), row.tag);
      const names = {
        resource: `acme-client-account:${row.id}`,
        label: `account ${row.id} of an ACME client`,
      };
      return { ...names, ...stateOf(row, fits), isLive: true };
    }),
    ...labelled.map((row): ListedRow => {
      const fits = integrity.fits('certificate labels', certificateLabelsText(row), row.tag);
      const names = { resource: `certificate:${row.name}`, label: `the labels of certificate ${row.name}` };
      return { ...names, ...stateOf(row, fits), isLive: true };
    }),
    ...changes.map((row): ListedRow => {
      const fits = integrity.fits('pending change', pendingChangeText(row), row.tag);
      const names = { resource: `pending-change:${row.id}`, label: `pending change ${row.id}` };
      return { ...names, ...stateOf(row, fits), isLive: true };
    }),
  ];
}

/** Labels of the rows that the vault refuses. Reads all rows. */
export async function listRefusedRows(reader: Reader, integrity: Integrity): Promise<string[]> {
  const rows = await listTaggedRows(reader, integrity);
  return rows.filter(({ state }) => state !== 'current').map(({ label }) => label);
}
