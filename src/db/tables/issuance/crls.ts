/** The table `crls`: for each CA certificate its signed CRL, and how many certificates it revoked. */
import type { Selectable } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { CrlsTable } from '../../schema/schema-private-ca.ts';

/** A CRL without its bytes. */
export type CrlHeadRow = Omit<Selectable<CrlsTable>, 'crl'>;

/** What is known of the CRL of a CA certificate; undefined before its first revocation or CRL. */
export async function findCrlHead(reader: Reader, caCertificateId: number): Promise<CrlHeadRow | undefined> {
  return reader
    .selectFrom('crls')
    .select(['ca_certificate_id', 'revocations', 'covered', 'number', 'signed_at', 'next_update'])
    .where('ca_certificate_id', '=', caCertificateId)
    .executeTakeFirst();
}

/** The newest signed CRL (DER) and its number; undefined if there is none yet. */
export async function findSignedCrl(
  reader: Reader,
  caCertificateId: number,
): Promise<{ readonly number: number; readonly crl: Buffer } | undefined> {
  return reader
    .selectFrom('crls')
    .select(['number', 'crl'])
    .where('ca_certificate_id', '=', caCertificateId)
    .where('number', '>', 0)
    .executeTakeFirst();
}

/** Counts a revocation. Call it in the transaction that revokes: those of other nodes wait until it has ended. */
export async function countRevocation(writer: Writer, caCertificateId: number): Promise<void> {
  await writer
    .insertInto('crls')
    .values({ ...unsigned, ca_certificate_id: caCertificateId, revocations: 1 })
    .onConflict((conflict) =>
      conflict
        .column('ca_certificate_id')
        .doUpdateSet(({ eb, ref }) => ({ revocations: eb(ref('crls.revocations'), '+', 1) })),
    )
    .execute();
}

/** Stores a signed CRL in place of the one with the number `replaced`. Returns false if another one came in between. */
export async function replaceCrl(
  writer: Writer,
  replaced: number,
  { ca_certificate_id: id, ...signed }: Omit<Selectable<CrlsTable>, 'revocations'>,
): Promise<boolean> {
  await writer
    .insertInto('crls')
    .values({ ...unsigned, ca_certificate_id: id, revocations: 0 })
    .onConflict((conflict) => conflict.column('ca_certificate_id').doNothing())
    .execute();
  const { numUpdatedRows } = await writer
    .updateTable('crls')
    .set(signed)
    .where('ca_certificate_id', '=', id)
    .where('number', '=', replaced)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

const unsigned = { covered: 0, number: 0, signed_at: 0, next_update: 0, crl: Buffer.alloc(0) } as const;
