/** The alarm for private CAs that stop issuing unless a person acts: at most once for each level of urgency. */
import { formatTimestamp } from '../../base/timestamp.ts';
import { findAlarm } from '../../db/tables/notifications/notification-alarms.ts';
import type { TimedContext } from '../contexts.ts';
import { type CaExpiry, caExpiries, listPrivateCas } from '../private-ca/ca-expiry.ts';
import type { PrivateCa } from '../private-ca/rotation.ts';
import { closeAlarm, raiseAlarm } from './notification-alarms.ts';
import { notify } from './notification-queue.ts';

const event = 'private_ca.expiring';

/** Notifies of private CAs that expire sooner than the last notification said, and of those that were renewed since. */
export async function notifyPrivateCas(vault: TimedContext): Promise<void> {
  const { db, world } = vault;
  for (const ca of await listPrivateCas(db.reader)) {
    const [worst] = (await caExpiries(vault, ca)).sort(byUrgency);
    if (worst !== undefined) await notifyPrivateCa(vault, ca, worst);
    await world.turn();
  }
}

/**
 * If two are announced and equally urgent, the root comes first, because replacing it renews both; else the earlier
 * one.
 */
function byUrgency(one: CaExpiry, other: CaExpiry): number {
  if (one.level !== other.level) return other.level - one.level;
  return one.level === 0 ? one.notAfter - other.notAfter : other.notAfter - one.notAfter;
}

async function notifyPrivateCa({ db, world }: TimedContext, ca: PrivateCa, worst: CaExpiry): Promise<void> {
  const subject = { issuerId: ca.id };
  const { level, role, notAfter, urgency, advice, fix } = worst;
  const open = await findAlarm(db.reader, event, subject);
  if (level === (open?.level ?? 0)) return;
  const about = { about: ca.name, certificates: null };
  const data = { private_ca: ca.name, role, expires_at: formatTimestamp(notAfter) };
  await db.write(async (writer) => {
    if (level === 0) {
      const closed = await closeAlarm(writer, event, subject);
      if (closed === undefined) return;
      const over = { ...data, since: formatTimestamp(closed.opened_at) };
      await notify(world, writer, { event: 'private_ca.recovered', ...about, data: over });
      return;
    }
    const current = await findAlarm(writer, event, subject);
    // Another process may have notified meanwhile.
    if (current?.level === level) return;
    // The most urgent CA was renewed; the next is another alarm.
    if (current !== undefined && current.level > level) await closeAlarm(writer, event, subject);
    const notice = { event, ...about, data: { ...data, urgency, advice, fix } } as const;
    await raiseAlarm(world, writer, { event, subject, level, notice: () => notice });
  });
}
