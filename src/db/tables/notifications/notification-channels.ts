/** The table `notification_channels`: the recipients of notifications, with sealed settings. */
import type { Insertable, Selectable, Updateable } from 'kysely';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { NotificationChannelsTable } from '../../schema/schema-notifications.ts';

export type ChannelRow = Selectable<NotificationChannelsTable>;
export type ChannelChanges = Updateable<NotificationChannelsTable>;

export async function findChannel(reader: Reader, name: string): Promise<ChannelRow | undefined> {
  return reader.selectFrom('notification_channels').selectAll().where('name', '=', name).executeTakeFirst();
}

export async function findChannelById(reader: Reader, id: number): Promise<ChannelRow | undefined> {
  return reader.selectFrom('notification_channels').selectAll().where('id', '=', id).executeTakeFirst();
}

const all = compiledQuery((db) => db.selectFrom('notification_channels').selectAll().orderBy('name'));

/** All channels by name; there are few. */
export async function listChannels(reader: Reader): Promise<ChannelRow[]> {
  return all(reader);
}

/** Adds a channel and returns its id. */
export async function insertChannel(
  writer: Writer,
  row: Insertable<NotificationChannelsTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('notification_channels')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function updateChannel(writer: Writer, id: number, changes: ChannelChanges): Promise<void> {
  await writer.updateTable('notification_channels').set(changes).where('id', '=', id).execute();
}

/** Deletes a channel with its deliveries. */
export async function deleteChannelRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('notification_channels').where('id', '=', id).execute();
}
