/** The table `ca_certificates`: roots and intermediates of private CAs, with their sealed keys. */
import { type Expression, type Insertable, type Selectable, sql } from 'kysely';
import type { Json } from '../../../base/json.ts';
import { type Builder, compiledQuery } from '../../compiled-query.ts';
import type { Reader, Writer } from '../../database.ts';
import type { CaCertificatesTable, CaConstraints } from '../../schema/schema-private-ca.ts';

export type CaCertificateRow = Selectable<CaCertificatesTable>;

/** A literal, because a compiled query has no values but its arguments. */
const one = sql.lit(1);

const currentRoot = compiledQuery((db, issuerId: Expression<number>) => roots(db, issuerId).limit(one));

/** The root that a private CA issues under. */
export async function findRoot(reader: Reader, issuerId: number): Promise<CaCertificateRow | undefined> {
  return (await currentRoot(reader, issuerId))[0];
}

/** All roots of a private CA: the one that it issues under, then the former ones, newest first. */
export async function listRoots(reader: Reader, issuerId: number): Promise<CaCertificateRow[]> {
  return roots(reader, issuerId).execute();
}

function roots(reader: Reader | Builder, issuerId: number | Expression<number>) {
  return reader
    .selectFrom('ca_certificates')
    .selectAll()
    .where('issuer_id', '=', issuerId)
    .where('role', '=', sql.lit('root'))
    .orderBy('generation', 'desc')
    .orderBy('id', 'desc');
}

/** The intermediates of a root, the one that expires last first. */
export async function listIntermediates(
  reader: Reader,
  root: Pick<CaCertificateRow, 'id'>,
): Promise<CaCertificateRow[]> {
  return intermediates(reader, root.id).execute();
}

const maxLifetimeOf = compiledQuery((db, rootId: Expression<number>) =>
  intermediates(db, rootId).where('constraints', 'is', null).limit(one),
);
const maxLifetimeWith = compiledQuery(
  (db, rootId: Expression<number>, constraints: Expression<Json<CaConstraints>>) =>
    intermediates(db, rootId).where('constraints', '=', constraints).limit(one),
);

/** Of the intermediates of a root with these constraints, the one that expires last. */
export async function findIntermediate(
  reader: Reader,
  root: Pick<CaCertificateRow, 'id'>,
  constraints: Json<CaConstraints> | null,
): Promise<CaCertificateRow | undefined> {
  const found =
    constraints === null ? maxLifetimeOf(reader, root.id) : maxLifetimeWith(reader, root.id, constraints);
  return (await found)[0];
}

function intermediates(reader: Reader | Builder, id: number | Expression<number>) {
  return reader
    .selectFrom('ca_certificates')
    .selectAll()
    .where('signer_id', '=', id)
    .orderBy('not_after', 'desc')
    .orderBy('id', 'desc');
}

/** Adds a CA certificate and returns its id. */
export async function insertCaCertificate(
  writer: Writer,
  row: Insertable<CaCertificatesTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('ca_certificates')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Stores the sealed key; it is sealed for the id of the row, which is known only after the insert. */
export async function setCaPrivateKey(writer: Writer, id: number, sealed: Buffer): Promise<void> {
  await writer
    .updateTable('ca_certificates')
    .set({ sealed_private_key: sealed })
    .where('id', '=', id)
    .execute();
}

/** Stores the certificate (DER) with which its successor certifies a former root. */
export async function setCrossCertificate(writer: Writer, id: number, certificate: Buffer): Promise<void> {
  await writer
    .updateTable('ca_certificates')
    .set({ cross_certificate: certificate })
    .where('id', '=', id)
    .execute();
}

/** Makes a root that was stored before the current one. */
export async function setGeneration(writer: Writer, id: number, generation: number): Promise<void> {
  await writer.updateTable('ca_certificates').set({ generation }).where('id', '=', id).execute();
}

/** Records that what an intermediate issues may be valid until then (UTC milliseconds). */
export async function extendIssuedUntil(writer: Writer, id: number, until: number): Promise<void> {
  await writer
    .updateTable('ca_certificates')
    .set({ issued_until: until })
    .where('id', '=', id)
    .where('issued_until', '<', until)
    .execute();
}

/** The CA certificate with this id. */
export async function findCaCertificateById(
  reader: Reader,
  id: number,
): Promise<CaCertificateRow | undefined> {
  return reader.selectFrom('ca_certificates').selectAll().where('id', '=', id).executeTakeFirst();
}

/** The CA certificate with these bytes (DER). */
export async function findSameCaCertificate(
  reader: Reader,
  certificate: Buffer,
): Promise<CaCertificateRow | undefined> {
  return reader
    .selectFrom('ca_certificates')
    .selectAll()
    .where('certificate', '=', certificate)
    .executeTakeFirst();
}

/**
 * The ids of an issuer's CA certificates that expire after this time, oldest first; not those of companies, whose CRLs
 * are elsewhere.
 */
export async function listCaCertificateIds(
  reader: Reader,
  issuerId: number,
  expiresAfter: number,
): Promise<number[]> {
  const rows = await reader
    .selectFrom('ca_certificates')
    .select('id')
    .where('issuer_id', '=', issuerId)
    .where('is_external', '=', 0)
    .where('not_after', '>', expiresAfter)
    .orderBy('id')
    .execute();
  return rows.map(({ id }) => id);
}
