/** What became of attempts to install: the next attempt, the row of the deployment, and what is news. */
import { day, hour, minute, second } from '../../base/duration.ts';
import { shortened } from '../../base/printable-text.ts';
import { latestTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import {
  type DeployTargetRow,
  findTargetCertificate,
  findTargetDeployment,
  type ListedTargetCertificateRow,
  updateTargetCertificate,
} from '../../db/tables/deploy-targets.ts';
import { insertDeployment, updateDeployment } from '../../db/tables/deployments.ts';
import type { Installed, TargetError } from '../../targets/target.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { WorldContext } from '../contexts.ts';
import { longestText } from '../deployments/deployment-inputs.ts';
import { changedOf, newsOf } from '../deployments/deployment-reports.ts';

/** Delays after each failed attempt; the last one repeats. */
const retryDelays = [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour];

/** A longer Retry-After of a target is obeyed up to this. */
const longestRetryAfter = day;

/** How often the vault checks that a certificate is still installed. */
const checkEvery = day;

/** One failure may pass by itself: the deployment is failing from the second one on. */
const failuresBeforeFailing = 2;

/** What an attempt came to; `same` if the current version was still installed. */
export type Outcome =
  | { readonly kind: 'same' }
  | { readonly kind: 'installed'; readonly installed: Installed }
  | { readonly kind: 'failed'; readonly error: TargetError };

/** An attempt, and what it came to. */
export type Attempted = {
  readonly target: DeployTargetRow;
  readonly link: ListedTargetCertificateRow;
  readonly version: { readonly version: number; readonly fingerprint_sha256: string };
  readonly outcome: Outcome;
  /** Whether the target can be asked what is installed. */
  readonly canAsk: boolean;
};

/**
 * Stores what an attempt came to: when the next one is due, and, unless it is a first failure, the row of the
 * deployment. Stores nothing if the certificate was removed from the target.
 */
export async function storeOutcome(
  { world }: WorldContext,
  writer: Writer,
  { target, link, version, outcome, canAsk }: Attempted,
  actor: Actor,
): Promise<void> {
  const now = world.now();
  const reload = outcome.kind === 'installed' ? outcome.installed.reload : undefined;
  const failure =
    outcome.kind === 'failed'
      ? outcome.error.message
      : reload?.result === 'failed'
        ? `command failed${reload.output === null ? '' : `: ${reload.output}`}`
        : undefined;
  const attempts = failure === undefined ? 0 : link.attempts + 1;
  const retryAfterMs = outcome.kind === 'failed' ? (outcome.error.retryAfterMs ?? 0) : 0;
  const spread = withJitter(world.randomBytes(2), failure === undefined ? checkEvery : retryDelay(attempts));
  const wait = Math.max(spread, Math.min(retryAfterMs, longestRetryAfter));
  const isStill = await storeUnlessDueAgain(writer, link, {
    attempts,
    error: failure === undefined ? null : shortened(failure, longestText),
    due_at: failure === undefined && !canAsk ? null : now + wait,
    ...(outcome.kind === 'installed' && { remote_id: outcome.installed.remoteId ?? null }),
  });
  if (!isStill) return;
  if (outcome.kind === 'failed' && attempts < failuresBeforeFailing && link.version === null) return;
  await storeDeployment(
    writer,
    { target, link, version, outcome, canAsk },
    { attempts, failure, now, actor },
  );
}

/** Updates the row; what made it due again meanwhile stays. Returns whether there is still a row. */
export async function storeUnlessDueAgain(
  writer: Writer,
  { id, due_at, current_version }: ListedTargetCertificateRow,
  changes: Parameters<typeof updateTargetCertificate>[2],
): Promise<boolean> {
  const current = await findTargetCertificate(writer, id);
  if (current === undefined) return false;
  const { due_at: next, attempts, ...others } = changes;
  const isSame = current.due_at === due_at && current.current_version === current_version;
  await updateTargetCertificate(writer, id, { ...others, ...(isSame && { due_at: next, attempts }) });
  return true;
}

/** Stores what is installed in the row of the deployment, and records what is news. */
async function storeDeployment(
  writer: Writer,
  { target, link, version, outcome }: Attempted,
  {
    attempts,
    failure,
    now,
    actor,
  }: {
    readonly attempts: number;
    readonly failure: string | undefined;
    readonly now: number;
    readonly actor: Actor;
  },
): Promise<void> {
  const old = await findTargetDeployment(writer, target.id, link.certificate_id);
  const reload = outcome.kind === 'installed' ? outcome.installed.reload : undefined;
  const isFailing = outcome.kind === 'failed' && attempts >= failuresBeforeFailing;
  const row = {
    ...{ host: target.host, job: target.name, destination: shortened(link.destination, longestText) },
    ...(outcome.kind === 'failed'
      ? {
          ...{ version: old?.version ?? null, fingerprint_sha256: old?.fingerprint_sha256 ?? null },
          ...{ reload: old?.reload ?? null, reload_output: old?.reload_output ?? null },
          error: isFailing ? shortened(failure ?? '', longestText) : (old?.error ?? null),
        }
      : {
          ...{ version: version.version, fingerprint_sha256: version.fingerprint_sha256, error: null },
          ...(outcome.kind === 'installed'
            ? { reload: reload?.result ?? null, reload_output: reload?.output ?? null }
            : { reload: old?.reload ?? null, reload_output: old?.reload_output ?? null }),
        }),
    ...{ verify: null, verify_output: null, next_run_at: null, client_version: null },
    ...{ last_seen_at: now, silent_at: latestTimestamp },
  };
  const resource = `certificate:${link.certificate}`;
  const news = newsOf(row);
  const detail = { deployment: deploymentName(target.name), host: row.host, ...news };
  if (old === undefined) {
    const owned = { certificate_id: link.certificate_id, api_key_id: null, deploy_target_id: target.id };
    await insertDeployment(writer, {
      ...{ ...owned, ...row, name: deploymentName(target.name), created_at: now, changed_at: now },
    });
    record(writer, { actor, action: 'deployment.create', resource, detail }, now);
    return;
  }
  const previous = changedOf(newsOf(old), news);
  const isNews = Object.keys(previous).length > 0;
  await updateDeployment(writer, old.id, { ...row, ...(isNews && { changed_at: now }) });
  if (isNews) {
    record(writer, { actor, action: 'deployment.update', resource, detail: { ...detail, previous } }, now);
  }
}

/** Clients cannot choose an id with a colon. */
function deploymentName(target: string): string {
  return `deploy-target:${target}`;
}

/** Milliseconds until the next attempt after this many failed ones. */
function retryDelay(attempts: number): number {
  return retryDelays[Math.min(attempts, retryDelays.length) - 1] ?? minute;
}

/** Up to a tenth less or more, so that targets that failed together spread. */
function withJitter(random: Buffer, wait: number): number {
  return Math.round(wait * (0.9 + (0.2 * random.readUInt16BE()) / 65_536));
}
