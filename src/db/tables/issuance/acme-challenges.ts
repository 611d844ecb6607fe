/**
 * The table `acme_challenges`: presented challenges, from before they are presented until after they are cleaned up.
 */
import { type Insertable, type Selectable, sql } from 'kysely';
import type { Reader, Writer } from '../../database.ts';
import type { AcmeChallengesTable } from '../../schema/schema.ts';
import { isOpen } from '../renewals/renewals.ts';

export type AcmeChallengeRow = Selectable<AcmeChallengesTable>;

/** The http-01 challenge with this token. The type is a literal so that SQLite uses the partial index. */
export async function findHttpChallenge(
  reader: Reader,
  token: string,
): Promise<AcmeChallengeRow | undefined> {
  return reader
    .selectFrom('acme_challenges')
    .selectAll()
    .where(sql<boolean>`type = 'http-01'`)
    .where('token', '=', token)
    .limit(1)
    .executeTakeFirst();
}

/** The newest tls-alpn-01 challenge for this identifier. */
export async function findTlsAlpnChallenge(
  reader: Reader,
  identifier: string,
): Promise<AcmeChallengeRow | undefined> {
  return reader
    .selectFrom('acme_challenges')
    .selectAll()
    .where(sql<boolean>`type = 'tls-alpn-01'`)
    .where('identifier', '=', identifier)
    .orderBy('id', 'desc')
    .limit(1)
    .executeTakeFirst();
}

export async function listRenewalChallenges(reader: Reader, renewalId: number): Promise<AcmeChallengeRow[]> {
  return reader
    .selectFrom('acme_challenges')
    .selectAll()
    .where('renewal_id', '=', renewalId)
    .orderBy('id')
    .execute();
}

/** Which of the ids have a challenge. */
export async function listChallengeIds(reader: Reader, ids: readonly number[]): Promise<ReadonlySet<number>> {
  const rows = await reader.selectFrom('acme_challenges').select('id').where('id', 'in', ids).execute();
  return new Set(rows.map(({ id }) => id));
}

/** Challenges that no open renewal needs: left over from a crash or a failed cleanup. */
export async function listLeftoverChallenges(reader: Reader): Promise<AcmeChallengeRow[]> {
  return reader
    .selectFrom('acme_challenges')
    .selectAll('acme_challenges')
    .where(({ not, exists, selectFrom }) =>
      not(
        exists(
          selectFrom('renewals')
            .select('renewals.id')
            .whereRef('renewals.id', '=', 'acme_challenges.renewal_id')
            .where(isOpen),
        ),
      ),
    )
    .orderBy('id')
    .execute();
}

/** Whether another challenge uses the same record at the same provider. */
export async function isRecordShared(
  reader: Reader,
  { id, dns_provider_id, record_name, record_value }: AcmeChallengeRow,
): Promise<boolean> {
  if (dns_provider_id === null || record_name === null || record_value === null) return false;
  const other = await reader
    .selectFrom('acme_challenges')
    .select('id')
    .where('dns_provider_id', '=', dns_provider_id)
    .where('record_name', '=', record_name)
    .where('record_value', '=', record_value)
    .where('id', '!=', id)
    .limit(1)
    .executeTakeFirst();
  return other !== undefined;
}

/** Adds a challenge and returns it. */
export async function insertChallenge(
  writer: Writer,
  row: Insertable<AcmeChallengesTable>,
): Promise<AcmeChallengeRow> {
  return writer.insertInto('acme_challenges').values(row).returningAll().executeTakeFirstOrThrow();
}

export async function deleteChallengeRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('acme_challenges').where('id', '=', id).execute();
}
