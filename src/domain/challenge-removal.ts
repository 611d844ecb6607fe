/** Taking down what was put up for a CA: at the end of an attempt, and after a crash at the next start. */

import { withDeadline } from '../base/deadline.ts';
import { day, minute } from '../base/duration.ts';
import {
  type AcmeChallengeRow,
  deleteChallengeRow,
  isRecordShared,
  listLeftoverChallenges,
} from '../db/acme-challenges.ts';
import { findDnsProviderById } from '../db/dns-providers.ts';
import type { TxtRecord } from '../dns/dns-provider.ts';
import { takeDown } from './dns-records.ts';
import type { Vault } from './vault.ts';

/** A removal that hangs must not hold up the certificate. */
const patience = minute;

/** A record that could not be removed for this long is left to people. */
const givenUpAfter = 7 * day;

/** The record of a challenge, where it has one. */
export function recordOf(row: AcmeChallengeRow): TxtRecord | undefined {
  const { record_name: name, record_value: value, record_zone: zone, identifier: domain } = row;
  return name === null || value === null || zone === null ? undefined : { name, value, zone, domain };
}

/**
 * Takes these challenges down. What cannot be removed now is logged and stays in the table for the next round; it never
 * makes a certificate fail.
 */
export async function removeChallenges(vault: Vault, rows: readonly AcmeChallengeRow[]): Promise<void> {
  for (const row of rows) {
    try {
      if (await leaveToOthers(vault, row)) continue;
      await removeRecord(vault, row);
      await vault.db.write((writer) => deleteChallengeRow(writer, row.id));
    } catch (error) {
      vault.log.warn({ err: error, record: row.record_name }, 'a challenge record could not be removed yet');
    }
  }
}

/** Takes down what crashes and failed removals left. Returns how many there were. */
export async function removeLeftoverChallenges(vault: Vault): Promise<number> {
  const rows = await listLeftoverChallenges(vault.db.reader);
  await removeChallenges(vault, rows);
  return rows.length;
}

/**
 * Where another renewal shares the authorization it needs the same record: whoever goes last takes it down, so here only
 * the row goes. Returns whether that was done.
 */
async function leaveToOthers({ db }: Vault, row: AcmeChallengeRow): Promise<boolean> {
  return db.write(async (writer) => {
    if (!(await isRecordShared(writer, row))) return false;
    await deleteChallengeRow(writer, row.id);
    return true;
  });
}

async function removeRecord(vault: Vault, row: AcmeChallengeRow): Promise<void> {
  const record = recordOf(row);
  if (record === undefined) return;
  const provider =
    row.dns_provider_id === null
      ? undefined
      : await findDnsProviderById(vault.db.reader, row.dns_provider_id);
  const isOld = vault.world.now() - row.created_at > givenUpAfter;
  if (provider === undefined || isOld) {
    vault.log.warn(
      { record: record.name, value: record.value },
      'a challenge record is left for you to remove',
    );
    return;
  }
  await withDeadline(vault.world, patience, new AbortController().signal, ({ signal }) =>
    takeDown(vault, provider, record, signal),
  );
}
