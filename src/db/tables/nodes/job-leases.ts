/**
 * The table `job_leases`: which node runs the jobs of a shared database, until when, and the number that fences off
 * earlier ones.
 */
import type { Reader, Writer } from '../../database.ts';
import type { JobLeasesTable } from '../../schema/schema-nodes.ts';

/** A lease as its holder knows it. */
export type JobLease = Pick<JobLeasesTable, 'job' | 'node_id' | 'fence'>;

/** The lease of a job, whether or not it has expired; undefined if no node ever had it. */
export async function readJobLease(reader: Reader, job: string): Promise<JobLeasesTable | undefined> {
  return reader.selectFrom('job_leases').selectAll().where('job', '=', job).executeTakeFirst();
}

/** Who wants which lease, at which time of the database. */
export type LeaseOrder = {
  readonly job: string;
  readonly nodeId: string;
  readonly now: number;
  readonly expiresAt: number;
  /** A lease that expires after this one does not count. */
  readonly latest: number;
};

/**
 * Gives the lease to a node with the next fence, if it is free or its own from before. Returns undefined if another
 * node has it. One statement, so that of two nodes that try at once one gets it.
 */
export async function takeJobLease(
  writer: Writer,
  { job, nodeId, now, expiresAt, latest }: LeaseOrder,
): Promise<JobLease | undefined> {
  return writer
    .insertInto('job_leases')
    .values({ job, node_id: nodeId, fence: 1, expires_at: expiresAt })
    .onConflict((conflict) =>
      conflict
        .column('job')
        .doUpdateSet(({ ref, eb }) => ({
          node_id: ref('excluded.node_id'),
          fence: eb('job_leases.fence', '+', 1),
          expires_at: ref('excluded.expires_at'),
        }))
        .where(({ eb, or }) =>
          or([
            eb('job_leases.expires_at', '<=', now),
            eb('job_leases.expires_at', '>', latest),
            eb('job_leases.node_id', '=', nodeId),
          ]),
        ),
    )
    .returning(['job', 'node_id', 'fence'])
    .executeTakeFirst();
}

/** Sets when the lease expires. Returns whether the holder still has it. */
export async function extendJobLease(writer: Writer, lease: JobLease, expiresAt: number): Promise<boolean> {
  return changeHeld(writer, lease, { expires_at: expiresAt });
}

/**
 * Whether the holder still has the lease. It writes the row unchanged, which locks it: no other node gets the lease
 * before this transaction has ended.
 */
export async function holdsJobLease(writer: Writer, lease: JobLease): Promise<boolean> {
  return changeHeld(writer, lease, { fence: lease.fence });
}

/** Deletes all leases, which are those of nodes that do not serve this copy of the database. */
export async function deleteJobLeases(writer: Writer): Promise<void> {
  await writer.deleteFrom('job_leases').execute();
}

async function changeHeld(
  writer: Writer,
  { job, node_id, fence }: JobLease,
  changes: Partial<JobLeasesTable>,
): Promise<boolean> {
  const result = await writer
    .updateTable('job_leases')
    .set(changes)
    .where('job', '=', job)
    .where('node_id', '=', node_id)
    .where('fence', '=', fence)
    .executeTakeFirst();
  return result.numUpdatedRows === 1n;
}
