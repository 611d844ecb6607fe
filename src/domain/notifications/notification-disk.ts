/** The alarm for low disk space. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { findAlarm } from '../../db/tables/notifications/notification-alarms.ts';
import type { TimedContext } from '../contexts.ts';
import { type DiskSpace, spaceState } from '../health/disk-space.ts';
import { closeAlarm, isReminderDue, raiseAlarm } from './notification-alarms.ts';
import { notify } from './notification-queue.ts';

const event = 'disk.low';

const levels = { low: 1, critical: 2 } as const;

export type DiskContext = TimedContext & { readonly disk: DiskSpace };

/** Notifies when space runs low, when it becomes critical, and when there is enough again. */
export async function notifyDiskSpace(vault: DiskContext): Promise<void> {
  const { db, world, disk } = vault;
  const free = await freeIn(disk);
  const state = free === null ? 'ok' : spaceState(free, disk.lowBelow);
  const open = await findAlarm(db.reader, event, {});
  if (state === 'ok' && open === undefined) return;
  const now = world.now();
  const data = {
    state,
    free_bytes: free,
    low_below_bytes: disk.lowBelow,
  };
  const notice = (since: number) => ({
    about: null,
    certificates: null,
    data: { ...data, since: formatTimestamp(since) },
  });
  if (state === 'ok') {
    await db.write(async (writer) => {
      const closed = await closeAlarm(writer, event, {});
      if (closed !== undefined)
        await notify(world, writer, { event: 'disk.recovered', ...notice(closed.opened_at) });
    });
    return;
  }
  const level = levels[state];
  if (open !== undefined && open.told_at <= now && !isReminderDue(open, level, now)) return;
  await db.write((writer) =>
    raiseAlarm(world, writer, {
      event,
      subject: {},
      level,
      notice: ({ at }) => ({ event, ...notice(at) }),
    }),
  );
}

/** Bytes; null if the alarm is off or the system does not report them. */
async function freeIn(disk: DiskSpace): Promise<number | null> {
  if (disk.lowBelow === 0) return null;
  try {
    return await disk.free();
  } catch {
    return null;
  }
}
