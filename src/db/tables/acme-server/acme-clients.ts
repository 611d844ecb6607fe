/** The table `acme_clients`: the programs that may order certificates from the vault's ACME server. */
import { type Expression, type Selectable, sql } from 'kysely';
import { comparableLabel } from '../../../base/label.ts';
import { mayReadLike } from '../../alike-names.ts';
import { goneRow, type Recorded, recordedLink } from '../../audit/row-records.ts';
import { compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeClientsTable } from '../../schema/schema-acme-server.ts';
import { indexLabels, isLabelled } from '../object-labels.ts';

export type AcmeClientRow = Selectable<AcmeClientsTable>;

/** A client without its key and the tag of the row, as shown in lists. */
export type ListedAcmeClientRow = Omit<AcmeClientRow, 'sealed_hmac_key' | 'tag'>;

const listed = [
  'id',
  'name',
  'kid',
  'domains',
  'issuers',
  'profiles',
  'allowed_networks',
  'validation',
  'rate',
  'created_at',
  'expires_at',
  'revoked_at',
  'last_used_at',
  'last_used_ip',
  'labels',
] as const;

const byId = compiledQuery((db, id: Expression<number>) =>
  db
    .selectFrom('acme_clients')
    .selectAll()
    .select(recordedLink('acme-client', 'acme_clients.id'))
    .where('id', '=', id),
);

const byKid = compiledQuery((db, kid: Expression<string>) =>
  db
    .selectFrom('acme_clients')
    .selectAll()
    .select(recordedLink('acme-client', 'acme_clients.id'))
    .where('kid', '=', kid),
);

export async function findAcmeClientRow(
  reader: Reader,
  id: number,
): Promise<(AcmeClientRow & Recorded) | undefined> {
  return (await byId(reader, id))[0];
}

export async function findAcmeClientByKid(
  reader: Reader,
  kid: string,
): Promise<(AcmeClientRow & Recorded) | undefined> {
  return (await byKid(reader, kid))[0];
}

/** The client of this name, of any state: names are unique. */
export async function findAcmeClientByName(
  reader: Reader,
  name: string,
): Promise<Pick<AcmeClientRow, 'id' | 'name' | 'revoked_at'> | undefined> {
  return reader
    .selectFrom('acme_clients')
    .select(['id', 'name', 'revoked_at'])
    .where('name', '=', name)
    .executeTakeFirst();
}

/** The client of any state, other than `own`, with a name that reads like this one. */
export async function findAcmeClientLike(
  reader: Reader,
  name: string,
  own?: number,
): Promise<Pick<AcmeClientRow, 'id' | 'name' | 'revoked_at'> | undefined> {
  const wanted = comparableLabel(name);
  const clients = await reader
    .selectFrom('acme_clients')
    .select(['id', 'name', 'revoked_at'])
    .where(mayReadLike(wanted))
    .orderBy('id')
    .execute();
  return clients.find((client) => client.id !== own && comparableLabel(client.name) === wanted);
}

/** A page of clients: at most `limit` after the id `after`, with any label of `reach` and all of `labels`. */
export type AcmeClientPage = {
  readonly after?: number | undefined;
  readonly limit: number;
  readonly labels?: readonly string[] | undefined;
  readonly reach?: readonly string[] | undefined;
};

/** Clients in the order of their ids. */
export async function pageAcmeClientRows(
  reader: Reader,
  { after = 0, limit, labels = [], reach }: AcmeClientPage,
): Promise<ListedAcmeClientRow[]> {
  let query = reader
    .selectFrom('acme_clients')
    .select(listed)
    .where('id', '>', after)
    .orderBy('id')
    .limit(limit);
  if (reach !== undefined) query = query.where(isLabelled('acme-client', 'acme_clients.id', reach));
  for (const label of labels) query = query.where(isLabelled('acme-client', 'acme_clients.id', [label]));
  return query.execute();
}

/** All clients, or those with these names, by id. */
export async function listAcmeClientRows(
  reader: Reader,
  names?: readonly string[],
): Promise<ListedAcmeClientRow[]> {
  const all = reader.selectFrom('acme_clients').select(listed).orderBy('id');
  return (names === undefined ? all : all.where('name', 'in', names)).execute();
}

/** Adds an active, unused client, whose key is set afterwards, and returns its id. */
export async function insertAcmeClient(
  writer: Writer,
  row: Omit<AcmeClientRow, 'id' | 'sealed_hmac_key' | 'revoked_at' | 'last_used_at' | 'last_used_ip' | 'tag'>,
): Promise<number> {
  const { id } = await writer
    .insertInto('acme_clients')
    .values({ ...row, sealed_hmac_key: Buffer.alloc(0) })
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Replaces the key of a client and the identifier of that key. */
export async function setAcmeClientKey(
  writer: Writer,
  id: number,
  row: Pick<AcmeClientRow, 'kid' | 'sealed_hmac_key'>,
): Promise<void> {
  await writer.updateTable('acme_clients').set(row).where('id', '=', id).execute();
}

/** Changes the rights of a client. */
export async function updateAcmeClientRow(
  writer: Writer,
  id: number,
  row: Pick<
    AcmeClientRow,
    | (
        | 'name'
        | 'domains'
        | 'issuers'
        | 'profiles'
        | 'allowed_networks'
        | 'validation'
        | 'rate'
        | 'expires_at'
      )
    | 'labels'
  >,
): Promise<void> {
  await writer.updateTable('acme_clients').set(row).where('id', '=', id).execute();
}

export async function setAcmeClientRevoked(writer: Writer, id: number, at: number): Promise<void> {
  await writer.updateTable('acme_clients').set({ revoked_at: at }).where('id', '=', id).execute();
}

/** Deletes the client and, by cascade, its accounts and their orders. */
export async function deleteAcmeClientRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('acme_clients').where('id', '=', id).execute();
  await indexLabels(writer, 'acme-client', id, []);
  writer.rows.set(`acme-client:${id}`, goneRow);
}

export type AcmeClientUse = { readonly id: number; readonly at: number; readonly ip: string | null };

/** How many uses one statement sets: each has three values. */
const usesAtOnce = 200;

export async function setAcmeClientsUsed(writer: Writer, uses: readonly AcmeClientUse[]): Promise<void> {
  for (let from = 0; from < uses.length; from += usesAtOnce) {
    const rows = uses
      .slice(from, from + usesAtOnce)
      .map(({ id, at, ip }) => sql`(cast(${id} as bigint), cast(${at} as bigint), cast(${ip} as text))`);
    await sql`with uses (id, at, ip) as (values ${sql.join(rows)})
      update acme_clients set last_used_at = uses.at, last_used_ip = uses.ip
      from uses where uses.id = acme_clients.id`.execute(writer);
  }
}
