/** The tables `deploy_targets` and `deploy_target_certificates`: where the vault installs which certificates. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type {
  DeploymentsTable,
  DeployTargetCertificatesTable,
  DeployTargetsTable,
} from '../schema/schema-deployments.ts';

export type DeployTargetRow = Selectable<DeployTargetsTable>;

export type TargetCertificateRow = Selectable<DeployTargetCertificatesTable>;

/** A certificate of a target, and what is installed there; without `version` nothing is. */
export type ListedTargetCertificateRow = TargetCertificateRow & {
  readonly certificate: string;
  readonly current_version: number | null;
  readonly version: number | null;
};

/** All targets, by name: there are few. */
export async function listDeployTargets(reader: Reader): Promise<DeployTargetRow[]> {
  return reader.selectFrom('deploy_targets').selectAll().orderBy('name').execute();
}

/** How many certificates of a target there are, how many of these failed last, and how many have an old version. */
export async function countTargetCertificates(
  reader: Reader,
  targetId: number,
): Promise<{ readonly all: number; readonly failing: number; readonly waiting: number }> {
  const { all, failing, waiting } = await reader
    .selectFrom('deploy_target_certificates')
    .innerJoin('certificates', 'certificates.id', 'deploy_target_certificates.certificate_id')
    .leftJoin('deployments', (join) =>
      join
        .onRef('deployments.certificate_id', '=', 'deploy_target_certificates.certificate_id')
        .onRef('deployments.deploy_target_id', '=', 'deploy_target_certificates.deploy_target_id'),
    )
    .where('deploy_target_certificates.deploy_target_id', '=', targetId)
    .select(({ fn }) => fn.countAll<number | string>().as('all'))
    .select(sql<number | string | null>`sum(case when attempts > 0 then 1 else 0 end)`.as('failing'))
    .select(
      sql<
        number | string | null
      >`sum(case when attempts = 0 and (deployments.version is null or current_version is null
        or deployments.version <> current_version) then 1 else 0 end)`.as('waiting'),
    )
    .executeTakeFirstOrThrow();
  return { all: Number(all), failing: Number(failing), waiting: Number(waiting) };
}

/** Whether there are at least `count` certificates on targets. */
export async function hasTargetCertificates(reader: Reader, count: number): Promise<boolean> {
  const last = await reader
    .selectFrom('deploy_target_certificates')
    .select('id')
    .where('id', '>', 0)
    .orderBy('id')
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return last !== undefined;
}

export async function findDeployTarget(reader: Reader, name: string): Promise<DeployTargetRow | undefined> {
  return reader.selectFrom('deploy_targets').selectAll().where('name', '=', name).executeTakeFirst();
}

export async function getDeployTarget(reader: Reader, id: number): Promise<DeployTargetRow | undefined> {
  return reader.selectFrom('deploy_targets').selectAll().where('id', '=', id).executeTakeFirst();
}

/** Adds a target. Returns its id. */
export async function insertDeployTarget(
  writer: Writer,
  row: Insertable<DeployTargetsTable>,
): Promise<number> {
  const { id } = await writer
    .insertInto('deploy_targets')
    .values(row)
    .returning('id')
    .executeTakeFirstOrThrow();
  return id;
}

export async function updateDeployTarget(
  writer: Writer,
  id: number,
  changes: Updateable<DeployTargetsTable>,
): Promise<void> {
  await writer.updateTable('deploy_targets').set(changes).where('id', '=', id).execute();
}

export async function deleteDeployTargetRow(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('deploy_targets').where('id', '=', id).execute();
}

/** The certificates of a target, by name. */
export async function listTargetCertificates(
  reader: Reader,
  targetId: number,
): Promise<ListedTargetCertificateRow[]> {
  return listed(reader)
    .where('deploy_target_certificates.deploy_target_id', '=', targetId)
    .orderBy('certificates.name')
    .execute();
}

export async function findTargetCertificate(
  reader: Reader,
  id: number,
): Promise<ListedTargetCertificateRow | undefined> {
  return listed(reader).where('deploy_target_certificates.id', '=', id).executeTakeFirst();
}

function listed(reader: Reader) {
  return reader
    .selectFrom('deploy_target_certificates')
    .innerJoin('certificates', 'certificates.id', 'deploy_target_certificates.certificate_id')
    .leftJoin('deployments', (join) =>
      join
        .onRef('deployments.certificate_id', '=', 'deploy_target_certificates.certificate_id')
        .onRef('deployments.deploy_target_id', '=', 'deploy_target_certificates.deploy_target_id'),
    )
    .selectAll('deploy_target_certificates')
    .select(['certificates.name as certificate', 'certificates.current_version', 'deployments.version']);
}

export async function insertTargetCertificates(
  writer: Writer,
  rows: readonly Insertable<DeployTargetCertificatesTable>[],
): Promise<void> {
  if (rows.length > 0) await writer.insertInto('deploy_target_certificates').values(rows).execute();
}

export async function updateTargetCertificate(
  writer: Writer,
  id: number,
  changes: Updateable<DeployTargetCertificatesTable>,
): Promise<void> {
  await writer.updateTable('deploy_target_certificates').set(changes).where('id', '=', id).execute();
}

/** Takes certificates from a target, and what was known about them there. */
export async function deleteTargetCertificates(
  writer: Writer,
  targetId: number,
  certificateIds: readonly number[],
): Promise<void> {
  if (certificateIds.length === 0) return;
  await writer
    .deleteFrom('deploy_target_certificates')
    .where('deploy_target_id', '=', targetId)
    .where('certificate_id', 'in', certificateIds)
    .execute();
  await writer
    .deleteFrom('deployments')
    .where('deploy_target_id', '=', targetId)
    .where('certificate_id', 'in', certificateIds)
    .execute();
}

/** The longest overdue row at `now` of a target other than those with the ids `except`. */
export async function nextDueTargetCertificate(
  reader: Reader,
  now: number,
  except: readonly number[],
): Promise<Pick<TargetCertificateRow, 'id' | 'deploy_target_id'> | undefined> {
  let query = reader
    .selectFrom('deploy_target_certificates')
    .select(['id', 'deploy_target_id'])
    .where('due_at', '<=', now)
    .orderBy('due_at')
    .limit(1);
  if (except.length > 0) query = query.where('deploy_target_id', 'not in', except);
  return query.executeTakeFirst();
}

/** A text that differs after each failed attempt, and after the one that succeeds. */
export async function failedDeploys(reader: Reader): Promise<string> {
  const { failed } = await reader
    .selectFrom('deploy_target_certificates')
    .select(sql<number | string | null>`sum(id * attempts)`.as('failed'))
    .where('attempts', '>', 0)
    .executeTakeFirstOrThrow();
  return String(failed);
}

/** The names of the first targets of a certificate. */
export async function targetsWith(reader: Reader, certificateId: number, limit: number): Promise<string[]> {
  const rows = await reader
    .selectFrom('deploy_target_certificates')
    .innerJoin('deploy_targets', 'deploy_targets.id', 'deploy_target_certificates.deploy_target_id')
    .select('deploy_targets.name')
    .where('deploy_target_certificates.certificate_id', '=', certificateId)
    .orderBy('deploy_targets.id')
    .limit(limit)
    .execute();
  return rows.map(({ name }) => name);
}

/** Makes a certificate due on all of its targets. */
export async function deploySoon(writer: Writer, certificateId: number, at: number): Promise<void> {
  await writer
    .updateTable('deploy_target_certificates')
    .set({ due_at: at, attempts: 0 })
    .where('certificate_id', '=', certificateId)
    .execute();
}

/** The deployment of a certificate by a target. */
export async function findTargetDeployment(
  reader: Reader,
  targetId: number,
  certificateId: number,
): Promise<Selectable<DeploymentsTable> | undefined> {
  return reader
    .selectFrom('deployments')
    .selectAll()
    .where('deploy_target_id', '=', targetId)
    .where('certificate_id', '=', certificateId)
    .executeTakeFirst();
}
