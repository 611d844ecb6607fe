/** The alarms that the clock raises: ends of certificates and API keys that come near, and backups that do not come. */
import { hour } from '../../base/duration.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { allowlistsOf } from '../../db/tables/api-key-certificates.ts';
import { findAlarm } from '../../db/tables/notification-alarms.ts';
import {
  type ExpiringApiKey,
  type ExpiringCertificate,
  type IdRange,
  listExpiringApiKeys,
  listExpiringCertificates,
  nearness,
  nextRange,
} from '../../db/tables/notification-watch.ts';
import { lastBackupAt } from '../backup/backup-age.ts';
import type { BackupHealth } from '../backup/backup-health.ts';
import type { BackupPlan } from '../backup/backup-schedule.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import { closeAlarm, isReminderDue, raiseAlarm } from './notification-alarms.ts';
import { notify } from './notification-queue.ts';

/** Looked at in one go, a few milliseconds of work; then others have their turn. */
const lookedAtOnce = 1000;

/** What is told in one transaction at most; the rest is for the next one. */
const toldAtOnce = 100;

type Table = 'certificates' | 'api_keys';

/** The last id of each table that was looked at; 0 before the first. */
export type ExpiryMarks = Record<Table, number>;

/**
 * Tells of certificates and API keys whose end has come nearer. Looks at no more than `most` of each, from where `lookedAt`
 * says, and says there how far it came: at the end of a table it is 0 again. Returns how many there were to tell of.
 */
export async function notifyExpiries(
  vault: TimedContext,
  lookedAt: ExpiryMarks = { certificates: 0, api_keys: 0 },
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  const part = { lookedAt, most };
  const certificates = await eachEnding(
    vault,
    'certificates',
    part,
    listExpiringCertificates,
    tellOfCertificate,
  );
  return certificates + (await eachEnding(vault, 'api_keys', part, listExpiringApiKeys, tellOfApiKey));
}

export type BackupWatchContext = TimedContext & { readonly backupHealth: BackupHealth };

type Part = { readonly lookedAt: ExpiryMarks; readonly most: number };
type List<Row> = (reader: Reader, now: number, range: IdRange, limit: number) => Promise<Row[]>;
type TellOf<Row> = (vault: WorldContext, writer: Writer, row: Row) => Promise<void>;

async function eachEnding<Row>(
  vault: TimedContext,
  table: Table,
  { lookedAt, most }: Part,
  list: List<Row>,
  tellOf: TellOf<Row>,
): Promise<number> {
  const { db, world } = vault;
  let count = 0;
  for (let looked = 0; looked < most; looked += lookedAtOnce) {
    const range = await nextRange(db.reader, table, lookedAt[table], Math.min(lookedAtOnce, most - looked));
    if (range === undefined) {
      lookedAt[table] = 0;
      return count;
    }
    count += await tellOfRange(vault, range, list, tellOf);
    // Not before: where it fails, the next look begins here.
    lookedAt[table] = range.last;
    await world.turn();
  }
  return count;
}

/** Looks with the reading connection first: mostly there is nothing, and nobody shall wait for the lock for that. */
async function tellOfRange<Row>(
  vault: TimedContext,
  range: IdRange,
  list: List<Row>,
  tellOf: TellOf<Row>,
): Promise<number> {
  const { db, world } = vault;
  let count = 0;
  while ((await list(db.reader, world.now(), range, 1)).length > 0) {
    count += await db.write(async (writer) => {
      const rows = await list(writer, world.now(), range, toldAtOnce);
      for (const row of rows) await tellOf(vault, writer, row);
      return rows.length;
    });
  }
  return count;
}

const levelNames = ['far', 'near', 'emergency', 'over'] as const;

async function tellOfCertificate(
  { world }: WorldContext,
  writer: Writer,
  row: ExpiringCertificate,
): Promise<void> {
  const event = 'certificate.expiring';
  const subject = { certificateId: row.id };
  if (row.level === nearness.far) {
    await closeAlarm(writer, event, subject);
    return;
  }
  const data = {
    certificate: row.name,
    domains: JSON.parse(row.domains) as string[],
    issuer: row.issuer,
    renews_itself: row.issuer !== null && row.auto_renew === 1,
    expires_at: formatTimestamp(row.ends_at),
    urgency: levelNames[row.level],
    last_error: row.last_error,
  };
  const notice = { event, about: row.name, certificates: [row.name], data } as const;
  await raiseAlarm(world, writer, { event, subject, level: row.level, notice: () => notice });
}

async function tellOfApiKey({ world }: WorldContext, writer: Writer, row: ExpiringApiKey): Promise<void> {
  const event = 'api_key.expiring';
  const subject = { apiKeyId: row.id };
  if (row.level === nearness.far) {
    await closeAlarm(writer, event, subject);
    return;
  }
  const certificates =
    row.any_certificate === 1 ? ['*'] : (await allowlistsOf(writer, [row.id])).map(({ name }) => name);
  const data = {
    api_key: { id: row.id, name: row.name, prefix: row.prefix },
    certificates,
    expires_at: formatTimestamp(row.ends_at),
    urgency: levelNames[row.level],
    last_used_at: formatTimestampOrNull(row.last_used_at),
  };
  const notice = { event, about: row.name, certificates, data } as const;
  await raiseAlarm(world, writer, { event, subject, level: row.level, notice: () => notice });
}

type Period = Pick<BackupPlan, 'every'>;

/** How late a scheduled backup may be: an hour, or the period where that is shorter. */
function slack({ every }: Period): number {
  return Math.min(hour, every);
}

/** Whether the last backup, if there ever was one, is older than it may be. */
export function isBackupOverdue(last: number | undefined, plan: Period, now: number): boolean {
  return last === undefined || now - last > plan.every + slack(plan);
}

/**
 * Tells when scheduled backups do not come, and when they do again. A vault that has run only since `since` (UTC
 * milliseconds) gets as much time for the first one as any may be late: it was perhaps away for days, and makes one now.
 * Without a plan there is nothing to wait for.
 */
export async function notifyBackups(
  vault: BackupWatchContext,
  plan: BackupPlan | undefined,
  since: number,
): Promise<void> {
  const { db, world, backupHealth } = vault;
  const event = 'backup.overdue';
  const open = await findAlarm(db.reader, event, {});
  if (plan === undefined) {
    if (open !== undefined) await db.write((writer) => closeAlarm(writer, event, {}));
    return;
  }
  const now = world.now();
  const last = await lastBackupAt(db.reader);
  const { setAside } = backupHealth;
  const data = {
    last_backup_at: last === undefined ? null : formatTimestamp(last),
    every_seconds: plan.every / 1000,
    directory: plan.directory,
    failing: backupHealth.isFailing,
    ...(setAside !== undefined && { set_aside: setAside }),
  };
  if (setAside !== undefined || isBackupOverdue(last, plan, now)) {
    // A backup that was set aside is worse than a late one, so report it without delay.
    const level = setAside === undefined ? 1 : 2;
    // Also where the clock was set back meanwhile.
    const hadTime = level > 1 || now - since > slack(plan) || now < since;
    if (!hadTime) return;
    if (open !== undefined && open.told_at <= now && !isReminderDue(open, level, now)) return;
    await db.write((writer) =>
      raiseAlarm(world, writer, {
        event,
        subject: {},
        level,
        notice: ({ at }) => ({
          event,
          about: null,
          certificates: null,
          data: { ...data, since: formatTimestamp(at) },
        }),
      }),
    );
  } else if (open !== undefined && (open.level < 2 || backupHealth.isKnown)) {
    // After a start no alarm is closed until the directory has been read.
    await db.write(async (writer) => {
      if ((await closeAlarm(writer, event, {})) === undefined) return;
      const over = { ...data, since: formatTimestamp(open.opened_at) };
      await notify(world, writer, { event: 'backup.recovered', about: null, certificates: null, data: over });
    });
  }
}
