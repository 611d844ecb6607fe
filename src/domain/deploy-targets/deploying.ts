/** Installs certificates on deploy targets: what is due, with retries, and what became of it. */
import { withDeadline } from '../../base/deadline.ts';
import { day, hour, minute, second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { shortened } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { formatTimestamp, latestTimestamp } from '../../base/timestamp.ts';
import type { Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import {
  type DeployTargetRow,
  dueTargetCertificates,
  findTargetCertificate,
  findTargetDeployment,
  getDeployTarget,
  type ListedTargetCertificateRow,
  listTargetCertificates,
  updateTargetCertificate,
} from '../../db/tables/deploy-targets.ts';
import { insertDeployment, updateDeployment } from '../../db/tables/deployments.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import { type Installed, type Material, type Target, TargetError } from '../../targets/target.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, SecretsContext, TimedContext } from '../contexts.ts';
import { longestText } from '../deployments/deployment-inputs.ts';
import { changedOf, newsOf } from '../deployments/deployment-reports.ts';
import { openVersionKey } from '../versions/versions.ts';
import { openTargetSettings, requireDeployTarget, requireType } from './deploy-targets.ts';

export type DeployContext = SecretsContext &
  LogContext & { readonly outbound: Outbound; readonly guard: OutboundGuard };

/** Something that is due, and since when. */
export type DueDeploy = Awaited<ReturnType<typeof dueTargetCertificates>>[number];

/** Delays after each failed attempt; the last one repeats. */
const retryDelays = [30 * second, 5 * minute, 30 * minute, 2 * hour, 6 * hour];

/** How often the vault checks that a certificate is still installed. */
const checkEvery = day;

/** One failure may pass by itself: the deployment is failing from the second one on. */
const failuresBeforeFailing = 2;

/** At most `limit` installations that are due, the longest overdue first. */
export function dueDeploys({ db, world }: TimedContext, limit: number): Promise<DueDeploy[]> {
  return dueTargetCertificates(db.reader, world.now(), limit);
}

/** What an attempt came to; `same` if the current version was still installed. */
type Outcome =
  | { readonly kind: 'same' }
  | { readonly kind: 'installed'; readonly installed: Installed }
  | { readonly kind: 'failed'; readonly error: TargetError };

/**
 * Installs the current version of a certificate on a target, unless it is still installed there, and stores what became
 * of it. Does nothing if the target or its certificate was removed, or if there is no version yet. When `signal` is
 * aborted, it is due as before. Returns the failure.
 */
export async function deploy(
  vault: DeployContext,
  id: number,
  actor: Actor,
  signal: AbortSignal,
): Promise<TargetError | undefined> {
  const { db, world, log } = vault;
  const link = await findTargetCertificate(db.reader, id);
  const row = link && (await getDeployTarget(db.reader, link.deploy_target_id));
  if (link === undefined || row === undefined) return undefined;
  const version =
    link.current_version === null
      ? undefined
      : await findVersion(db.reader, link.certificate_id, link.current_version);
  if (version === undefined) {
    await db.write((writer) => storeUnlessDueAgain(writer, link, { due_at: null }));
    return undefined;
  }
  const material = {
    ...{ name: link.certificate, version: version.version, fingerprint: version.fingerprint_sha256 },
    ...{ domains: parseJson(version.domains), notAfter: formatTimestamp(version.not_after) },
    ...{ certificate: version.certificate_pem, chain: version.chain_pem },
    fullchain: version.certificate_pem + version.chain_pem,
  };
  let outcome: Outcome;
  let canAsk = false;
  try {
    const type = requireType(row.type);
    const config = openTargetSettings(vault, row);
    const target = type.create(config, vault);
    canAsk = target.isInstalled !== undefined;
    const patience = type.patience(config);
    outcome = await withDeadline(world, patience, signal, async (deadline) => {
      const openKey = () => openVersionKey(vault, version);
      try {
        return await attempt(vault, { link, row, target, material, actor }, deadline.signal, openKey);
      } catch (error) {
        if (deadline.ended() !== 'timeout') throw error;
        throw new TargetError(`no response from ${row.host} within ${patience / second} s`, { cause: error });
      }
    });
  } catch (error) {
    if (signal.aborted) return undefined;
    outcome = { kind: 'failed', error: asTargetError(error) };
    if (!(error instanceof TargetError))
      log.error({ err: error, target: row.name }, 'failed to deploy a certificate');
  }
  const after = { target: row, link, version, outcome, canAsk };
  await db.write((writer) => store(vault, writer, after, actor));
  const fields = { target: row.name, certificate: link.certificate, version: version.version };
  if (outcome.kind === 'failed') {
    log.warn({ ...fields, reason: outcome.error.message }, 'failed to deploy a certificate');
    return outcome.error;
  }
  if (outcome.kind === 'installed') log.info(fields, 'certificate deployed');
  return undefined;
}

/** Those that people wait for, per process. */
const deploysAtOnce = 16;

let running = 0;

/**
 * Deploys one certificate of a target now, for somebody who waits. Throws `deploy_target_not_found`,
 * `certificate_not_found`, `deploy_failed`, and `rate_limited` if too many run.
 */
export async function deployNow(
  vault: DeployContext,
  actor: Actor,
  { target, certificate }: { readonly target: string; readonly certificate: string },
  signal: AbortSignal,
): Promise<ListedTargetCertificateRow> {
  const { id: targetId } = await requireDeployTarget(vault.db.reader, target);
  const rows = await listTargetCertificates(vault.db.reader, targetId);
  const link = rows.find((row) => row.certificate === certificate);
  if (link === undefined) {
    throw new Problem('certificate_not_found', {
      detail: `${certificate} is not among the certificates of the deploy target ${target}.`,
    });
  }
  if (running >= deploysAtOnce) {
    throw new Problem('rate_limited', {
      detail: `${deploysAtOnce} certificates are being deployed; retry in a moment.`,
      retryAfter: 5,
    });
  }
  running += 1;
  const failure = await deploy(vault, link.id, actor, signal).finally(() => {
    running -= 1;
  });
  if (failure !== undefined) throw new Problem('deploy_failed', { detail: `${failure.message}.` });
  return (await findTargetCertificate(vault.db.reader, link.id)) ?? link;
}

type Attempt = {
  readonly link: ListedTargetCertificateRow;
  readonly row: DeployTargetRow;
  readonly target: Target;
  readonly material: Omit<Material, 'privateKey'>;
  readonly actor: Actor;
};

async function attempt(
  { db, world }: DeployContext,
  { link, row, target, material, actor }: Attempt,
  signal: AbortSignal,
  openKey: () => Secret,
): Promise<Outcome> {
  const isKnown = link.version === material.version && link.attempts === 0;
  if (isKnown && (await target.isInstalled?.(material, link.remote_id, signal))) return { kind: 'same' };
  const privateKey = new Secret(openKey().expose().toString('latin1'));
  await db.write(async (writer) => {
    const { name, version, fingerprint: fingerprint_sha256 } = material;
    const detail = { deploy_target: row.name, type: row.type, host: row.host, version, fingerprint_sha256 };
    const resource = `certificate:${name}`;
    // Before the private key leaves.
    record(writer, { actor, action: 'certificate.deploy', resource, detail }, world.now());
  });
  return {
    kind: 'installed',
    installed: await target.install({ ...material, privateKey }, link.remote_id, signal),
  };
}

function asTargetError(error: unknown): TargetError {
  if (error instanceof TargetError) return error;
  if (error instanceof Problem) return new TargetError(error.message.replace(/\.$/, ''), { cause: error });
  return new TargetError('internal error; see the log of the vault', { cause: error });
}

type After = {
  readonly target: DeployTargetRow;
  readonly link: ListedTargetCertificateRow;
  readonly version: { readonly version: number; readonly fingerprint_sha256: string };
  readonly outcome: Outcome;
  /** Whether the target can be asked what is installed. */
  readonly canAsk: boolean;
};

async function store(
  { world }: DeployContext,
  writer: Writer,
  { target, link, version, outcome, canAsk }: After,
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
  const wait = failure === undefined ? checkEvery : retryDelay(attempts, retryAfterMs);
  const isStill = await storeUnlessDueAgain(writer, link, {
    attempts,
    error: failure === undefined ? null : shortened(failure, longestText),
    due_at: failure === undefined && !canAsk ? null : now + withJitter(world.randomBytes(2), wait),
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
async function storeUnlessDueAgain(
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
  { target, link, version, outcome }: After,
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

/** Milliseconds until the next attempt after this many failed ones; a longer Retry-After of the target is obeyed. */
export function retryDelay(attempts: number, retryAfterMs = 0): number {
  const delay = retryDelays[Math.min(attempts, retryDelays.length) - 1] ?? minute;
  return Math.max(delay, Math.min(retryAfterMs, day));
}

/** Up to a tenth less or more, so that targets that failed together spread. */
function withJitter(random: Buffer, wait: number): number {
  return Math.round(wait * (0.9 + (0.2 * random.readUInt16BE()) / 65_536));
}
