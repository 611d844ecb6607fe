/** The table `notifications`: what is to be told, whoever hears it. */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { NotificationsTable } from '../schema/schema-notifications.ts';

export type NotificationRow = Selectable<NotificationsTable>;

/** Adds a notification and returns its id. */
export async function insertNotification(
  writer: Writer,
  row: Insertable<NotificationsTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('notifications')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Those of these ids that are there, oldest first. */
export async function listNotifications(reader: Reader, ids: readonly number[]): Promise<NotificationRow[]> {
  return reader.selectFrom('notifications').selectAll().where('id', 'in', ids).orderBy('id').execute();
}
