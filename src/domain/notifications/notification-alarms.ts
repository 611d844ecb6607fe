/** Alarms: told when they begin, again at growing distances or when it gets worse, and once when they are over. */
import { day, hour } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AlarmRow,
  type AlarmSubject,
  deleteAlarm,
  findAlarm,
  insertAlarm,
  updateAlarm,
} from '../../db/tables/notification-alarms.ts';
import type { AlarmEvent, Notice } from './notification-events.ts';
import { notify } from './notification-queue.ts';

/** How long after each notice the next one comes, while nothing else changes; the last goes on for ever. */
const distances = [6 * hour, day, 2 * day, 4 * day, 7 * day];

export type AlarmState = Pick<AlarmRow, 'level' | 'told_at' | 'times_told'>;

/** Whether an alarm that is open is to be told again: it got worse, or the last time is long ago. */
export function isReminderDue(alarm: AlarmState, level: number, now: number): boolean {
  if (level > alarm.level) return true;
  const distance = distances[Math.min(alarm.times_told, distances.length) - 1] ?? day;
  return now - alarm.told_at >= distance;
}

export type Alarm = {
  readonly event: AlarmEvent;
  readonly subject: AlarmSubject;
  /** How bad it is; more is worse. */
  readonly level: number;
  /** Gets when the alarm was opened (UTC milliseconds), and how often it was told before. */
  readonly notice: (opened: { readonly at: number; readonly timesTold: number }) => Notice;
};

/** Opens the alarm, or goes on with the one that is open, and tells of it if it is time. */
export async function raiseAlarm(
  world: World,
  writer: Writer,
  { event, subject, level, notice }: Alarm,
): Promise<void> {
  const now = world.now();
  const open = await findAlarm(writer, event, subject);
  if (open === undefined) {
    await insertAlarm(writer, {
      event,
      certificate_id: subject.certificateId ?? null,
      api_key_id: subject.apiKeyId ?? null,
      level,
      opened_at: now,
      told_at: now,
      times_told: 1,
    });
    await notify(world, writer, notice({ at: now, timesTold: 0 }));
    return;
  }
  // A clock that was ahead must not silence an alarm until it is there again.
  if (open.told_at > now) await updateAlarm(writer, open.id, { told_at: now });
  if (!isReminderDue(open, level, now)) return;
  await updateAlarm(writer, open.id, { level, told_at: now, times_told: open.times_told + 1 });
  await notify(world, writer, notice({ at: open.opened_at, timesTold: open.times_told }));
}

/** Ends an alarm without a word; what it was, or undefined where none was open. */
export async function closeAlarm(
  writer: Writer,
  event: AlarmEvent,
  subject: AlarmSubject,
): Promise<AlarmRow | undefined> {
  const open = await findAlarm(writer, event, subject);
  if (open !== undefined) await deleteAlarm(writer, open.id);
  return open;
}
