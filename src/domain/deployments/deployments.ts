/** Deployments as people look through them, counted by state, and pruned after a long silence. */
import { day } from '../../base/duration.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import {
  type DeploymentFacts,
  type DeploymentPage,
  deleteSilent,
  firstSilence,
  type ListedDeploymentRow,
  pageDeploymentFacts,
  pageDeployments,
} from '../../db/tables/deployments.ts';
import { nextRange, nextRangeOfKey } from '../../db/tables/id-ranges.ts';
import type { TimedContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { type DeploymentState, deploymentState, deploymentStates } from './deployment-state.ts';

/** A deployment with its state. */
export type Deployment = ListedDeploymentRow & { readonly state: DeploymentState };

type StepView = { result: 'ok' | 'failed'; output: string | null };

export type DeploymentView = {
  /** The client's id for it, unique per certificate; that of a target begins with `deploy-target:`. */
  id: string;
  certificate: string;
  host: string;
  job: string;
  destination: string;
  state: DeploymentState;
  version: number | null;
  /** The current version of the certificate; null before the first one. */
  current_version: number | null;
  fingerprint_sha256: string | null;
  reload: StepView | null;
  verify: StepView | null;
  /** Why the last run failed before the reload. */
  error: string | null;
  next_run_at: string | null;
  client_version: string | null;
  /** The API key that reports it; null if the vault installs. */
  api_key: { id: number; name: string } | null;
  /** The name of the target that the vault installs on; null if a client reports. */
  deploy_target: string | null;
  created_at: string;
  /** When version, fingerprint or a result last changed. */
  changed_at: string;
  last_seen_at: string;
};

/** Which deployments; what is undefined does not matter. */
export type DeploymentSearch = Pick<DeploymentPage, 'apiKeyId' | 'host' | 'labels' | 'reach' | 'limit'> & {
  /** The name of a certificate. */
  readonly certificate?: string | undefined;
  readonly state?: DeploymentState | undefined;
  /** Only those after the one with this number. */
  readonly after?: number | undefined;
};

/** Deployments that a query looks through: a few milliseconds of work. */
const scannedAtOnce = 500;

/** How long a silent deployment is kept. */
export const keptAfterSilence = 30 * day;

/** The deployments that match, in the order of their first report, in portions. Throws `certificate_not_found`. */
export async function* findDeployments(
  { db, world }: TimedContext,
  { certificate, apiKeyId, host, state, labels, reach, after = 0, limit }: DeploymentSearch,
): AsyncGenerator<readonly Deployment[]> {
  const certificateId =
    certificate === undefined ? undefined : (await requireCertificate(db.reader, certificate)).id;
  const now = world.now();
  let from = after;
  for (let left = limit; left > 0; ) {
    const range =
      certificateId === undefined
        ? await (apiKeyId === undefined
            ? nextRange(db.reader, 'deployments', from, scannedAtOnce)
            : nextRangeOfKey(db.reader, apiKeyId, from, scannedAtOnce))
        : undefined;
    if (certificateId === undefined && range === undefined) return;
    const filters = { certificateId, apiKeyId, host, labels, reach };
    const page = { ...filters, after: from, last: range?.last, limit: scannedAtOnce };
    const rows = await pageDeployments(db.reader, page);
    const matches = rows
      .map((row) => ({ ...row, state: stateOf(row, now) }))
      .filter((row) => state === undefined || row.state === state)
      .slice(0, left);
    yield matches;
    left -= matches.length;
    if (certificateId !== undefined && rows.length < scannedAtOnce) return;
    from = range?.last ?? rows.at(-1)?.id ?? from;
    if (left > 0) await world.turn();
  }
}

/** The state of a deployment at `now`, UTC milliseconds. */
export function stateOf(row: DeploymentFacts, now: number): DeploymentState {
  const { current_version: version, current_since: since } = row;
  const current = version === null || since === null ? null : { version, created_at: since };
  return deploymentState(row, current, now);
}

/** What failed: the last run, or its reload or verification with the last line of output; undefined for nothing. */
export function failureOf(
  row: Pick<ListedDeploymentRow, 'error' | 'reload' | 'reload_output' | 'verify' | 'verify_output'>,
): string | undefined {
  if (row.error !== null) return row.error;
  const steps = [
    ['reload', row.reload, row.reload_output],
    ['verification', row.verify, row.verify_output],
  ] as const;
  const [name, , output] = steps.find(([, result]) => result === 'failed') ?? [];
  return name && `${name} failed${output ? `: ${output}` : ''}`;
}

/** A deployment as the API and the commands show it. */
export function deploymentView(row: Deployment): DeploymentView {
  const { certificate, host, job, destination, state, version, fingerprint_sha256, error } = row;
  return {
    id: row.name,
    certificate,
    host,
    job,
    destination,
    state,
    version,
    current_version: row.current_version,
    fingerprint_sha256,
    reload: row.reload && { result: row.reload, output: row.reload_output },
    verify: row.verify && { result: row.verify, output: row.verify_output },
    error,
    next_run_at: formatTimestampOrNull(row.next_run_at),
    client_version: row.client_version,
    api_key: row.api_key_id === null ? null : { id: row.api_key_id, name: row.api_key ?? '' },
    deploy_target: row.deploy_target,
    created_at: formatTimestamp(row.created_at),
    changed_at: formatTimestamp(row.changed_at),
    last_seen_at: formatTimestamp(row.last_seen_at),
  };
}

/** How many deployments there are in each state. */
export async function countDeployments({
  db,
  world,
}: TimedContext): Promise<Record<DeploymentState, number>> {
  const now = world.now();
  const counts = Object.fromEntries(deploymentStates.map((state) => [state, 0])) as Record<
    DeploymentState,
    number
  >;
  for await (const rows of deploymentFacts({ db, world })) {
    for (const row of rows) counts[stateOf(row, now)] += 1;
  }
  return counts;
}

/** The facts of all deployments, or of those of one certificate, in portions of a few milliseconds of work. */
export async function* deploymentFacts(
  { db, world }: TimedContext,
  certificateId?: number,
): AsyncGenerator<readonly DeploymentFacts[]> {
  for (let after = 0; ; ) {
    const rows = await pageDeploymentFacts(db.reader, after, scannedAtOnce, certificateId);
    yield rows;
    const last = rows.at(-1);
    if (last === undefined || rows.length < scannedAtOnce) return;
    after = last.id;
    await world.turn();
  }
}

/** Between two transactions, in milliseconds, so that requests have their turn. */
const pause = 20;

/** Deletes the deployments that have been silent for `keptAfterSilence`. Returns how many. */
export async function pruneDeployments({ db, world }: TimedContext, signal: AbortSignal): Promise<number> {
  const before = world.now() - keptAfterSilence;
  // A vault without old deployments writes nothing.
  if (((await firstSilence(db.reader)) ?? before) >= before) return 0;
  let removed = 0;
  while (!signal.aborted) {
    const some = await db.write((writer) => deleteSilent(writer, before, scannedAtOnce));
    removed += some;
    if (some < scannedAtOnce) break;
    await world.sleep(pause, signal);
  }
  return removed;
}
