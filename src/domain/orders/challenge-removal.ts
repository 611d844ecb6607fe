/**
 * Cleaning up presented challenges: in the background after validation, so that the renewal does not wait,
 * and after a crash or a failure by the job that removes leftovers.
 */
import { day, minute } from '../../base/duration.ts';
import {
  type AcmeChallengeRow,
  deleteChallengeRow,
  isRecordShared,
  listChallengeIds,
  listLeftoverChallenges,
} from '../../db/tables/issuance/acme-challenges.ts';
import { type DnsProviderRow, findDnsProviderById } from '../../db/tables/issuance/dns-providers.ts';
import type { TxtRecord } from '../../dns/dns-provider.ts';
import type { DatabaseContext, LogContext, WorldContext } from '../contexts.ts';
import { inTurns, OperationTimeout, removeRecords } from '../dns-providers/dns-records.ts';
import type { ChallengeContext, DnsProviderContext } from '../issuance-contexts.ts';

/** A record that could not be removed for this long must be removed by hand. */
const abandonedAfter = 7 * day;

/** Removals that have taken so long go before records to be presented; within an hour no record should be left. */
const urgentAfter = 20 * minute;

/** A challenge, and the record that was presented for it. */
type Presented = TxtRecord & { readonly row: AcmeChallengeRow };

/** The DNS record of a challenge, if it has one. */
export function recordOf(row: AcmeChallengeRow): TxtRecord | undefined {
  const { record_name: name, record_value: value, record_zone: zone, identifier: domain } = row;
  return name === null || value === null || zone === null ? undefined : { name, value, zone, domain };
}

/** Removes these challenges in the background; `vault.removals` tracks the work. */
export function beginRemoval(vault: ChallengeContext, rows: readonly AcmeChallengeRow[]): void {
  if (rows.length === 0) return;
  // The work logs its own errors.
  void removeChallenges(vault, rows);
}

/**
 * Removes these challenges, except those that are already being removed, each provider's separately. Errors are logged
 * and the challenges stay in the table for the next round; they never make a renewal fail.
 */
export async function removeChallenges(
  vault: ChallengeContext,
  rows: readonly AcmeChallengeRow[],
): Promise<void> {
  const byProvider = Map.groupBy(rows, (row) => row.dns_provider_id);
  const work = [...byProvider].map(([provider, own]) =>
    vault.removals.begin(own, async (mine, signal) => {
      try {
        await removeOf(vault, provider, mine, signal);
      } catch (error) {
        vault.log.warn({ err: error }, 'failed to remove challenges; retrying later');
      }
    }),
  );
  await Promise.all(work);
}

/** Removes the challenges that crashes and failed removals left behind. Returns how many there were. */
export async function removeLeftoverChallenges(vault: ChallengeContext): Promise<number> {
  const rows = vault.removals.idleOf(await listLeftoverChallenges(vault.db.reader));
  await removeChallenges(vault, rows);
  return rows.length;
}

async function removeOf(
  vault: ChallengeContext,
  id: number | null,
  challenges: readonly AcmeChallengeRow[],
  signal: AbortSignal,
): Promise<void> {
  const provider = id === null ? undefined : await findDnsProviderById(vault.db.reader, id);
  const presented = challenges.flatMap((row) => {
    const record = recordOf(row);
    return record === undefined || isLost(vault, row, provider) ? [] : { ...record, row };
  });
  const removable = new Set(presented.map(({ row }) => row));
  await forget(
    vault,
    challenges.filter((row) => !removable.has(row)),
  );
  if (provider !== undefined) await removeThrough(vault, provider, presented, signal);
}

/** Whether the record can only be removed by hand; logs it. */
function isLost(
  { world, log }: WorldContext & LogContext,
  { created_at: createdAt, record_name: record, record_value: value }: AcmeChallengeRow,
  provider: DnsProviderRow | undefined,
): boolean {
  if (provider !== undefined && world.now() - createdAt <= abandonedAfter) return false;
  log.warn({ record, value }, 'challenge record left in place; remove it by hand');
  return true;
}

/**
 * Removes all records together, or each by itself if that fails, so that one does not block the others. They take turns
 * with records to be presented, and go first once they have taken long: behind a hook that sleeps, records would stand
 * for hours after their renewal. A provider that fails to remove gets no such preference, so that it can still present.
 */
async function removeThrough(
  vault: ChallengeContext,
  provider: DnsProviderRow,
  presented: readonly Presented[],
  signal: AbortSignal,
): Promise<void> {
  let isSilent = false;
  let hasFailed = false;
  const urgentAt = vault.world.now() + urgentAfter;
  const isUrgent = () => !hasFailed && vault.world.now() >= urgentAt;
  const remove = async (some: readonly Presented[]): Promise<boolean> => {
    // With a provider that does not respond, each record would wait for the full timeout.
    if (signal.aborted || isSilent) return false;
    try {
      const work = (mine: readonly Presented[], deadline: AbortSignal) =>
        removeUnshared(vault, provider, mine, deadline);
      await inTurns(vault, provider, some, signal, work, isUrgent);
      return true;
    } catch (error) {
      hasFailed = true;
      isSilent ||= error instanceof OperationTimeout;
      if (signal.aborted) return false;
      if (some.length === 1 || isSilent) {
        const records = some.map(({ name }) => name).slice(0, 10);
        vault.log.warn(
          { err: error, provider: provider.name, records },
          'failed to remove challenge records',
        );
      }
      return false;
    }
  };
  if (presented.length > 1 && (await remove(presented))) return;
  const rest = await stillStored(vault, presented);
  await Promise.all(rest.map((one) => remove([one])));
}

/**
 * Removes records, and their rows in the same turn. Where another renewal shares the authorization it needs
 * the same record: the last one removes it, and the others delete only their rows. The check must happen
 * inside the turn, or a record that was presented meanwhile could be removed, or left behind.
 */
async function removeUnshared(
  vault: DatabaseContext & DnsProviderContext,
  provider: DnsProviderRow,
  presented: readonly Presented[],
  deadline: AbortSignal,
): Promise<void> {
  const own = await vault.db.write(async (writer) => {
    const unshared: Presented[] = [];
    for (const one of presented) {
      if (await isRecordShared(writer, one.row)) await deleteChallengeRow(writer, one.row.id);
      else unshared.push(one);
    }
    return unshared;
  });
  if (own.length === 0) return;
  await removeRecords(vault, provider, own, deadline);
  await forget(
    vault,
    own.map(({ row }) => row),
  );
}

async function stillStored(
  vault: DatabaseContext,
  presented: readonly Presented[],
): Promise<readonly Presented[]> {
  if (presented.length === 0) return [];
  const ids = await listChallengeIds(
    vault.db.reader,
    presented.map(({ row }) => row.id),
  );
  return presented.filter(({ row }) => ids.has(row.id));
}

async function forget({ db }: DatabaseContext, rows: readonly AcmeChallengeRow[]): Promise<void> {
  if (rows.length === 0) return;
  await db.write(async (writer) => {
    for (const { id } of rows) await deleteChallengeRow(writer, id);
  });
}
