/** Alarms: notified when they open, again at growing intervals or when they get worse, and once when they close. */
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
} from '../../db/tables/notifications/notification-alarms.ts';
import type { AlarmEvent, Notice } from './notification-events.ts';
import { notify } from './notification-queue.ts';

/** Intervals between reminders; the last one repeats. */
const reminderIntervals = [6 * hour, day, 2 * day, 4 * day, 7 * day];

export type AlarmState = Pick<AlarmRow, 'level' | 'told_at' | 'times_told'>;

/** Whether a reminder of an open alarm is due: the alarm got worse, or the interval has passed. */
export function isReminderDue(alarm: AlarmState, level: number, now: number): boolean {
  if (level > alarm.level) return true;
  const interval = reminderIntervals[Math.min(alarm.times_told, reminderIntervals.length) - 1] ?? day;
  return now - alarm.told_at >= interval;
}

export type Alarm = {
  readonly event: AlarmEvent;
  readonly subject: AlarmSubject;
  /** Severity; higher is worse. */
  readonly level: number;
  /** Builds the notification from when the alarm opened (UTC milliseconds) and how often it was sent before. */
  readonly notice: (opened: { readonly at: number; readonly timesNotified: number }) => Notice;
};

/** Opens the alarm or updates the open one, and notifies if it is new or a reminder is due. */
export async function raiseAlarm(
  world: World,
  writer: Writer,
  { event, subject, level, notice }: Alarm,
): Promise<void> {
  const now = world.now();
  const open = await findAlarm(writer, event, subject);
  if (open === undefined) {
    await insertAlarm(writer, event, subject, { level, opened_at: now, told_at: now, times_told: 1 });
    await notify(world, writer, notice({ at: now, timesNotified: 0 }));
    return;
  }
  // A clock that was ahead must not delay reminders until that time comes.
  if (open.told_at > now) await updateAlarm(writer, open.id, { told_at: now });
  if (!isReminderDue(open, level, now)) return;
  await updateAlarm(writer, open.id, { level, told_at: now, times_told: open.times_told + 1 });
  await notify(world, writer, notice({ at: open.opened_at, timesNotified: open.times_told }));
}

/** Closes an alarm without a notification. Returns it, or undefined if none was open. */
export async function closeAlarm(
  writer: Writer,
  event: AlarmEvent,
  subject: AlarmSubject,
): Promise<AlarmRow | undefined> {
  const open = await findAlarm(writer, event, subject);
  if (open !== undefined) await deleteAlarm(writer, open.id);
  return open;
}
