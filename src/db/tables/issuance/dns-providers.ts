/** The table `dns_providers`: providers, their zones and sealed credentials. */
import type { Insertable, Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { DnsProvidersTable } from '../../schema/schema.ts';

export type DnsProviderRow = Selectable<DnsProvidersTable>;

export async function findDnsProvider(reader: Reader, name: string): Promise<DnsProviderRow | undefined> {
  return reader.selectFrom('dns_providers').selectAll().where('name', '=', name).executeTakeFirst();
}

export async function findDnsProviderById(reader: Reader, id: number): Promise<DnsProviderRow | undefined> {
  return reader.selectFrom('dns_providers').selectAll().where('id', '=', id).executeTakeFirst();
}

export async function listDnsProviders(reader: Reader): Promise<DnsProviderRow[]> {
  return reader.selectFrom('dns_providers').selectAll().orderBy('name').execute();
}

/** Adds a provider and returns its id. */
export async function insertDnsProvider(writer: Writer, row: Insertable<DnsProvidersTable>): Promise<number> {
  const { id } = await writer
    .insertInto('dns_providers')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Stores the sealed secret; it is sealed for the id of the row, which is known only after the insert. */
export async function setDnsProviderSecret(writer: Writer, id: number, sealed: Buffer): Promise<void> {
  await writer.updateTable('dns_providers').set({ sealed_secret: sealed }).where('id', '=', id).execute();
}

/** Changes type and zones; the secret is resealed as well, which tells other processes that it changed. */
export async function updateDnsProvider(
  writer: Writer,
  id: number,
  changes: Pick<DnsProviderRow, 'type' | 'zones'>,
): Promise<void> {
  await writer.updateTable('dns_providers').set(changes).where('id', '=', id).execute();
}

export async function deleteDnsProviderRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('dns_providers').where('id', '=', id).execute();
}
