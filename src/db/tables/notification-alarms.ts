/** The table `notification_alarms`: current problems, and when they were last notified. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { NotificationAlarmsTable } from '../schema/schema-notifications.ts';

export type AlarmRow = Selectable<NotificationAlarmsTable>;

/** The subject of an alarm: a certificate, an API key, or the vault as a whole if neither is set. */
export type AlarmSubject = { readonly certificateId?: number; readonly apiKeyId?: number };

export async function findAlarm(
  reader: Reader,
  event: string,
  { certificateId, apiKeyId }: AlarmSubject,
): Promise<AlarmRow | undefined> {
  let query = reader.selectFrom('notification_alarms').selectAll().where('event', '=', event);
  if (certificateId !== undefined) query = query.where('certificate_id', '=', certificateId);
  if (apiKeyId !== undefined) query = query.where('api_key_id', '=', apiKeyId);
  return query.executeTakeFirst();
}

export async function insertAlarm(writer: Writer, row: Insertable<NotificationAlarmsTable>): Promise<void> {
  await writer.insertInto('notification_alarms').values(row).execute();
}

export async function updateAlarm(
  writer: Writer,
  id: number,
  changes: Updateable<NotificationAlarmsTable>,
): Promise<void> {
  await writer.updateTable('notification_alarms').set(changes).where('id', '=', id).execute();
}

export async function deleteAlarm(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('notification_alarms').where('id', '=', id).execute();
}
