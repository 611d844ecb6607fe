/** The table `notification_alarms`: current problems, and when they were last notified. */
import type { Expression, Insertable, Selectable, Updateable } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { NotificationAlarmsTable } from '../../schema/schema-notifications.ts';

export type AlarmRow = Selectable<NotificationAlarmsTable>;

/** The subject of an alarm: a certificate, an API key, an issuer, or the vault as a whole if none is set. */
export type AlarmSubject = {
  readonly certificateId?: number;
  readonly apiKeyId?: number;
  readonly issuerId?: number;
};

/** The event with its issuer, for which the table has no column of its own: `private_ca.expiring/7`. */
function storedEvent(event: string, { issuerId }: AlarmSubject): string {
  return issuerId === undefined ? event : `${event}/${issuerId}`;
}

const ofCertificate = compiledQuery((db, event: Expression<string>, certificateId: Expression<number>) =>
  db
    .selectFrom('notification_alarms')
    .selectAll()
    .where('event', '=', event)
    .where('certificate_id', '=', certificateId),
);

export async function findAlarm(
  reader: Reader,
  event: string,
  subject: AlarmSubject,
): Promise<AlarmRow | undefined> {
  const { certificateId, apiKeyId } = subject;
  if (certificateId !== undefined && apiKeyId === undefined)
    return (await ofCertificate(reader, storedEvent(event, subject), certificateId))[0];
  let query = reader
    .selectFrom('notification_alarms')
    .selectAll()
    .where('event', '=', storedEvent(event, subject));
  if (apiKeyId !== undefined) query = query.where('api_key_id', '=', apiKeyId);
  return query.executeTakeFirst();
}

export async function insertAlarm(
  writer: Writer,
  event: string,
  subject: AlarmSubject,
  row: Omit<Insertable<NotificationAlarmsTable>, 'event' | 'certificate_id' | 'api_key_id'>,
): Promise<void> {
  const { certificateId, apiKeyId } = subject;
  await writer
    .insertInto('notification_alarms')
    .values({
      ...row,
      event: storedEvent(event, subject),
      certificate_id: certificateId ?? null,
      api_key_id: apiKeyId ?? null,
    })
    .execute();
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
