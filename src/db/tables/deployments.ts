/** The table `deployments`: where certificates are installed, with what was last reported about it. */
import { type Insertable, type Selectable, sql, type Updateable } from 'kysely';
import type { Reader, Writer } from '../database.ts';
import type { DeploymentsTable, NotifiedState } from '../schema/schema-deployments.ts';
import { isLabelled } from './object-labels.ts';

export type DeploymentRow = Selectable<DeploymentsTable>;

/** A deployment, and what decides whether another API key may report it. */
export type OwnedDeploymentRow = DeploymentRow & {
  readonly revoked_at: number | null;
  readonly expires_at: number | null;
};

/** The deployment of the certificate with this name, with the key that reports it. */
export async function findDeployment(
  reader: Reader,
  certificateId: number,
  name: string,
): Promise<OwnedDeploymentRow | undefined> {
  return reader
    .selectFrom('deployments')
    .leftJoin('api_keys', 'api_keys.id', 'deployments.api_key_id')
    .selectAll('deployments')
    .select(['api_keys.revoked_at', 'api_keys.expires_at'])
    .where('deployments.certificate_id', '=', certificateId)
    .where('deployments.name', '=', name)
    .executeTakeFirst();
}

export async function insertDeployment(writer: Writer, row: Insertable<DeploymentsTable>): Promise<void> {
  await writer.insertInto('deployments').values(row).execute();
}

export async function updateDeployment(
  writer: Writer,
  id: number,
  changes: Updateable<DeploymentsTable>,
): Promise<void> {
  await writer.updateTable('deployments').set(changes).where('id', '=', id).execute();
}

export async function deleteDeployment(writer: Writer, id: number): Promise<void> {
  await writer.deleteFrom('deployments').where('id', '=', id).execute();
}

/** Whether the API key has at least `count` deployments. */
export async function hasDeployments(reader: Reader, apiKeyId: number, count: number): Promise<boolean> {
  const last = await reader
    .selectFrom('deployments')
    .select('id')
    .where('api_key_id', '=', apiKeyId)
    .orderBy('id')
    .offset(count - 1)
    .limit(1)
    .executeTakeFirst();
  return last !== undefined;
}

/** What a report without news changes. */
export type Sighting = Pick<
  DeploymentRow,
  | 'id'
  | 'host'
  | 'job'
  | 'destination'
  | 'reload_output'
  | 'verify_output'
  | 'error'
  | 'next_run_at'
  | 'client_version'
  | 'last_seen_at'
  | 'silent_at'
>;

/** How many sightings one statement sets: each has eleven values. */
const sightingsAtOnce = 200;

/** Stores what was reported, except where a newer report is stored already. */
export async function setSightings(writer: Writer, sightings: readonly Sighting[]): Promise<void> {
  for (let from = 0; from < sightings.length; from += sightingsAtOnce) {
    const rows = sightings.slice(from, from + sightingsAtOnce).map(
      (row) =>
        sql`(${int(row.id)}, ${text(row.host)}, ${text(row.job)}, ${text(row.destination)}, ${text(row.reload_output)},
            ${text(row.verify_output)}, ${text(row.error)}, ${int(row.next_run_at)}, ${text(row.client_version)},
            ${int(row.last_seen_at)}, ${int(row.silent_at)})`,
    );
    await sql`with seen (id, host, job, destination, reload_output, verify_output, error, next_run_at, client_version,
        last_seen_at, silent_at) as (values ${sql.join(rows)})
      update deployments set host = seen.host, job = seen.job, destination = seen.destination,
        reload_output = seen.reload_output, verify_output = seen.verify_output, error = seen.error,
        next_run_at = seen.next_run_at, client_version = seen.client_version, last_seen_at = seen.last_seen_at,
        silent_at = seen.silent_at
      from seen where seen.id = deployments.id and seen.last_seen_at >= deployments.last_seen_at`.execute(
      writer,
    );
  }
}

function int(value: number | null) {
  return sql`cast(${value} as bigint)`;
}

function text(value: string | null) {
  return sql`cast(${value} as text)`;
}

/** A deployment with its certificate, that one's current version, and its API key or its target. */
export type ListedDeploymentRow = DeploymentRow & {
  readonly certificate: string;
  readonly current_version: number | null;
  /** When the vault got the current version. */
  readonly current_since: number | null;
  readonly api_key: string | null;
  readonly deploy_target: string | null;
};

export type DeploymentPage = {
  /** Only these. */
  readonly ids?: readonly number[] | undefined;
  /** Of one certificate only. */
  readonly certificateId?: number | undefined;
  /** Of one API key only. */
  readonly apiKeyId?: number | undefined;
  /** Of one host only. */
  readonly host?: string | undefined;
  /** Only those of certificates with all of these labels. */
  readonly labels?: readonly string[] | undefined;
  /** Only those of certificates with any of these labels. */
  readonly reach?: readonly string[] | undefined;
  /** Only ids greater than `after`, up to `last`. */
  readonly after: number;
  readonly last?: number | undefined;
  readonly limit: number;
};

/**
 * Deployments in the order of their ids. Give `last` with a host, labels or a reach: for them, rows are searched.
 */
export async function pageDeployments(
  reader: Reader,
  { ids, certificateId, apiKeyId, host, labels = [], reach, after, last, limit }: DeploymentPage,
): Promise<ListedDeploymentRow[]> {
  let query = reader
    .selectFrom('deployments')
    .innerJoin('certificates', 'certificates.id', 'deployments.certificate_id')
    .leftJoin('api_keys', 'api_keys.id', 'deployments.api_key_id')
    .leftJoin('deploy_targets', 'deploy_targets.id', 'deployments.deploy_target_id')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .selectAll('deployments')
    .select(['certificates.name as certificate', 'certificates.current_version'])
    .select(['certificate_versions.created_at as current_since', 'api_keys.name as api_key'])
    .select('deploy_targets.name as deploy_target')
    .where('deployments.id', '>', after)
    .orderBy('deployments.id')
    .limit(limit);
  if (ids !== undefined) query = query.where('deployments.id', 'in', ids);
  if (last !== undefined) query = query.where('deployments.id', '<=', last);
  if (certificateId !== undefined) query = query.where('deployments.certificate_id', '=', certificateId);
  if (apiKeyId !== undefined) query = query.where('deployments.api_key_id', '=', apiKeyId);
  if (host !== undefined) query = query.where('deployments.host', '=', host);
  for (const label of labels)
    query = query.where(isLabelled('certificate', 'deployments.certificate_id', [label]));
  if (reach !== undefined)
    query = query.where(isLabelled('certificate', 'deployments.certificate_id', reach));
  return query.execute();
}

/** What the state of a deployment depends on. */
export type DeploymentFacts = Pick<
  ListedDeploymentRow,
  | 'id'
  | 'last_seen_at'
  | 'next_run_at'
  | 'version'
  | 'reload'
  | 'verify'
  | 'error'
  | 'current_version'
  | 'current_since'
  | 'notified_state'
  | 'deploy_target_id'
>;

/**
 * The facts of at most `limit` deployments after the id `after`, in the order of their ids: of all certificates, or of
 * one.
 */
export async function pageDeploymentFacts(
  reader: Reader,
  after: number,
  limit: number,
  certificateId?: number,
): Promise<DeploymentFacts[]> {
  let query = reader
    .selectFrom('deployments')
    .innerJoin('certificates', 'certificates.id', 'deployments.certificate_id')
    .leftJoin('certificate_versions', (join) =>
      join
        .onRef('certificate_versions.certificate_id', '=', 'certificates.id')
        .onRef('certificate_versions.version', '=', 'certificates.current_version'),
    )
    .select(['deployments.id', 'deployments.last_seen_at', 'deployments.next_run_at', 'deployments.version'])
    .select(['deployments.reload', 'deployments.verify', 'deployments.error', 'deployments.notified_state'])
    .select(['certificates.current_version', 'certificate_versions.created_at as current_since'])
    .select('deployments.deploy_target_id')
    .where('deployments.id', '>', after)
    .orderBy('deployments.id')
    .limit(limit);
  if (certificateId !== undefined) query = query.where('deployments.certificate_id', '=', certificateId);
  return query.execute();
}

/** Remembers what was notified about these deployments. */
export async function setNotifiedState(
  writer: Writer,
  ids: readonly number[],
  notified_state: NotifiedState | null,
): Promise<void> {
  await writer.updateTable('deployments').set({ notified_state }).where('id', 'in', ids).execute();
}

/** When the first deployment became silent, or will; undefined without any. */
export async function firstSilence(reader: Reader): Promise<number | undefined> {
  const { at } = await reader
    .selectFrom('deployments')
    .select(({ fn }) => fn.min<number | null>('silent_at').as('at'))
    .executeTakeFirstOrThrow();
  return at ?? undefined;
}

/** Deletes at most `limit` deployments that became silent before `before`. Returns how many. */
export async function deleteSilent(writer: Writer, before: number, limit: number): Promise<number> {
  const silent = writer
    .selectFrom('deployments')
    .select('id')
    .where('silent_at', '<', before)
    .orderBy('silent_at')
    .limit(limit);
  const { numDeletedRows } = await writer
    .deleteFrom('deployments')
    .where('id', 'in', silent)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
