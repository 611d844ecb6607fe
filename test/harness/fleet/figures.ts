/** What became of a fleet: how soon each certificate was renewed, and how long its challenge records stood. */
import { day, hour, minute } from '../../../src/base/duration.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { Span, StoodRecord } from './dns.ts';

export type RenewalFigures = {
  /** Healthy certificates, and how many of them were renewed in time: before half of what was left had passed. */
  readonly healthy: number;
  readonly due: number;
  readonly inTime: number;
  readonly late: number;
  readonly expired: number;
  /** Renewals that were due for more than a day at the end, with time left. */
  readonly waiting: number;
  /** Of what was left at the due moment, the largest share that passed, and what 99 of 100 stayed below. */
  readonly worstShare: number;
  readonly share99: number;
  /** Hours from due to renewed: the middle one, what 99 of 100 stayed below, and the longest. */
  readonly medianHours: number;
  readonly hours99: number;
  readonly longestHours: number;
  readonly attempts: number;
};

export type RecordFigures = {
  readonly records: number;
  /**
   * Records that stood for longer than an hour after the attempt that presented them had ended, and where their
   * provider was down within that hour, for longer than an hour after it was up again.
   */
  readonly recordsLeft: number;
  /** The longest that one stood after that moment, in minutes. */
  readonly longestRecordMinutes: number;
};

/** How soon the healthy certificates were renewed. `isBroken` tells by the certificate's name. */
export async function renewalFigures(
  { db, world }: Vault,
  isBroken: (name: string) => boolean,
): Promise<RenewalFigures> {
  const certificates = await db.reader.selectFrom('certificates').select(['id', 'name']).execute();
  const versions = await db.reader
    .selectFrom('certificate_versions')
    .select(['certificate_id', 'version', 'not_after', 'created_at'])
    .orderBy('id')
    .execute();
  const renewals = await db.reader
    .selectFrom('renewals')
    .select(['certificate_id', 'requested_at'])
    .orderBy('id')
    .execute();
  const shares: number[] = [];
  const hours: number[] = [];
  let expired = 0;
  let waiting = 0;
  const healthy = certificates.filter(({ name }) => !isBroken(name));
  const versionsOf = Map.groupBy(versions, ({ certificate_id }) => certificate_id);
  const renewalsOf = Map.groupBy(renewals, ({ certificate_id }) => certificate_id);
  for (const { id } of healthy) {
    const own = versionsOf.get(id) ?? [];
    const requests = renewalsOf.get(id) ?? [];
    for (const [at, version] of own.entries()) {
      const due = requests.find(({ requested_at }) => requested_at >= version.created_at)?.requested_at;
      if (due === undefined) continue;
      const renewedAt = own[at + 1]?.created_at ?? world.now();
      if (renewedAt > version.not_after) expired += 1;
      const isUnderWay = own[at + 1] === undefined;
      const share = (renewedAt - due) / (version.not_after - due);
      if (isUnderWay && share < 0.5) {
        if (renewedAt - due > day) waiting += 1;
        continue;
      }
      shares.push(share);
      hours.push((renewedAt - due) / hour);
    }
  }
  const inTime = shares.filter((share) => share < 0.5).length;
  return {
    ...{
      healthy: healthy.length,
      due: shares.length,
      inTime,
      late: shares.length - inTime,
      expired,
      waiting,
    },
    ...{ worstShare: below(shares, 1), share99: below(shares, 0.99) },
    ...{ medianHours: below(hours, 0.5), hours99: below(hours, 0.99), longestHours: below(hours, 1) },
    attempts: renewals.length,
  };
}

/** How long records stood. `downOf` says when the provider of a name was down. */
export async function recordFigures(
  { db, world }: Vault,
  records: readonly StoodRecord[],
  downOf: (name: string) => Span | undefined,
): Promise<RecordFigures> {
  const rows = await db.reader.selectFrom('renewals').select(['id', 'finished_at']).execute();
  const endOf = new Map(rows.map(({ id, finished_at }) => [id, finished_at]));
  const stood = records.map(({ name, until = world.now(), renewal }) => {
    const end = renewal === undefined ? undefined : endOf.get(renewal);
    if (end === undefined) throw new Error(`no renewal has presented ${name}`);
    // The attempt still needs it.
    if (end === null) return 0;
    const down = downOf(name);
    const wasDown = down !== undefined && down[0] < end + hour && down[1] > end;
    return Math.max(0, until - (wasDown ? down[1] : end));
  });
  return {
    records: stood.length,
    recordsLeft: stood.filter((ms) => ms > hour).length,
    longestRecordMinutes: stood.reduce((longest, ms) => Math.max(longest, ms), 0) / minute,
  };
}

/** The number that this share of the numbers does not exceed. */
function below(numbers: readonly number[], share: number): number {
  const ordered = numbers.toSorted((one, other) => one - other);
  return ordered[Math.min(ordered.length - 1, Math.floor(ordered.length * share))] ?? 0;
}
