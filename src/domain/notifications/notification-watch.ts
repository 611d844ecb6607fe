/** Alarms raised by time: expiring certificates and API keys, and overdue backups. */
import { hour } from '../../base/duration.ts';
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { allowlistsOf } from '../../db/tables/access/api-key-certificates.ts';
import { type IdRange, nextRange } from '../../db/tables/id-ranges.ts';
import { findAlarm } from '../../db/tables/notifications/notification-alarms.ts';
import {
  type ExpiringApiKey,
  type ExpiringCertificate,
  listExpiringApiKeys,
  listExpiringCertificates,
  nearness,
} from '../../db/tables/notifications/notification-watch.ts';
import { lastBackupAt } from '../backup/backup-age.ts';
import type { BackupHealth } from '../backup/backup-health.ts';
import type { BackupPlan } from '../backup/backup-schedule.ts';
import type { TimedContext, WorldContext } from '../contexts.ts';
import { isNotYetValid } from '../schedule/validity.ts';
import { closeAlarm, isReminderDue, raiseAlarm } from './notification-alarms.ts';
import { notify } from './notification-queue.ts';

/** Rows per scan step, a few milliseconds of work before the event loop runs. */
const scannedAtOnce = 1000;

/** Alarms raised per transaction. */
const raisedAtOnce = 100;

type Table = 'certificates' | 'api_keys';

/** The last scanned id of each table; 0 to start from the beginning. */
export type ExpiryCursor = Record<Table, number>;

/**
 * Raises and closes the alarms of expiring certificates and API keys. Scans at most `most` rows of each table, starting
 * after `cursor`, which it advances; at the end of a table the cursor returns to 0. Returns how many alarms it raised
 * or closed.
 */
export async function notifyExpiries(
  vault: TimedContext,
  cursor: ExpiryCursor = { certificates: 0, api_keys: 0 },
  most = Number.POSITIVE_INFINITY,
): Promise<number> {
  const part = { cursor, most };
  const certificates = await scanTable(
    vault,
    'certificates',
    part,
    listExpiringCertificates,
    alertCertificate,
  );
  return certificates + (await scanTable(vault, 'api_keys', part, listExpiringApiKeys, alertApiKey));
}

export type BackupWatchContext = TimedContext & { readonly backupHealth: BackupHealth };

type Part = { readonly cursor: ExpiryCursor; readonly most: number };
type List<Row> = (reader: Reader, now: number, range: IdRange, limit: number) => Promise<Row[]>;
type Alert<Row> = (vault: WorldContext, writer: Writer, row: Row) => Promise<void>;

async function scanTable<Row>(
  vault: TimedContext,
  table: Table,
  { cursor, most }: Part,
  list: List<Row>,
  alert: Alert<Row>,
): Promise<number> {
  const { db, world } = vault;
  let count = 0;
  for (let scanned = 0; scanned < most; scanned += scannedAtOnce) {
    const range = await nextRange(db.reader, table, cursor[table], Math.min(scannedAtOnce, most - scanned));
    if (range === undefined) {
      cursor[table] = 0;
      return count;
    }
    count += await scanRange(vault, range, list, alert);
    // Only now, so that the next scan repeats a range that failed.
    cursor[table] = range.last;
    await world.turn();
  }
  return count;
}

/** Reads first without the write lock, because there is usually nothing to do. */
async function scanRange<Row>(
  vault: TimedContext,
  range: IdRange,
  list: List<Row>,
  alert: Alert<Row>,
): Promise<number> {
  const { db, world } = vault;
  let count = 0;
  while ((await list(db.reader, world.now(), range, 1)).length > 0) {
    count += await db.write(async (writer) => {
      const rows = await list(writer, world.now(), range, raisedAtOnce);
      for (const row of rows) await alert(vault, writer, row);
      return rows.length;
    });
  }
  return count;
}

const levelNames = ['far', 'near', 'emergency', 'over'] as const;

async function alertCertificate(
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
    domains: parseJson(row.domains),
    issuer: row.issuer,
    ...(row.owner !== null && { acme_client: row.owner }),
    renews_itself: row.issuer !== null && row.auto_renew === 1,
    expires_at: formatTimestamp(row.ends_at),
    urgency: levelNames[row.level],
    ...(isNotYetValid(row.begins_at, world.now()) && { not_valid_before: formatTimestamp(row.begins_at) }),
    last_error: row.last_error,
  };
  const notice = { event, about: row.name, certificates: [row.name], data } as const;
  await raiseAlarm(world, writer, { event, subject, level: row.level, notice: () => notice });
}

async function alertApiKey({ world }: WorldContext, writer: Writer, row: ExpiringApiKey): Promise<void> {
  const event = 'api_key.expiring';
  const subject = { apiKeyId: row.id };
  if (row.level === nearness.far) {
    await closeAlarm(writer, event, subject);
    return;
  }
  const certificates =
    row.any_certificate === 1 ? ['*'] : (await allowlistsOf(writer, [row.id])).map(({ name }) => name);
  const labels = parseJsonOr(row.certificate_labels, []);
  const data = {
    api_key: { id: row.id, name: row.name, prefix: row.prefix },
    certificates,
    ...(labels.length > 0 && { certificate_labels: labels }),
    expires_at: formatTimestamp(row.ends_at),
    urgency: levelNames[row.level],
    last_used_at: formatTimestampOrNull(row.last_used_at),
  };
  const notice = { event, about: row.name, certificates, labels, data } as const;
  await raiseAlarm(world, writer, { event, subject, level: row.level, notice: () => notice });
}

type Period = Pick<BackupPlan, 'every'>;

/** How late a scheduled backup may be: an hour, or the period if that is shorter. */
function slack({ every }: Period): number {
  return Math.min(hour, every);
}

/** Whether there is no backup or the last one is too old. */
export function isBackupOverdue(last: number | undefined, plan: Period, now: number): boolean {
  return last === undefined || now - last > plan.every + slack(plan);
}

/**
 * Notifies when scheduled backups are overdue and when they work again. A vault that was started at `since` (UTC
 * milliseconds) gets the usual slack first, because it may have been off for days and creates a backup now. Without a
 * plan, no backup is due.
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
    // `now < since` if the clock was set back meanwhile.
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
