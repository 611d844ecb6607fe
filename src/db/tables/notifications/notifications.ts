/** The table `notifications`: the notifications, independent of their recipients. */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { NotificationsTable } from '../../schema/schema-notifications.ts';

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

/** The notifications with these ids that exist, oldest first. */
export async function listNotifications(reader: Reader, ids: readonly number[]): Promise<NotificationRow[]> {
  return reader.selectFrom('notifications').selectAll().where('id', 'in', ids).orderBy('id').execute();
}
