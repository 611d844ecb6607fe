/** Installs certificates on deploy targets: what is due, with retries, and what became of it. */
import { withDeadline } from '../../base/deadline.ts';
import { second } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { sentence } from '../../base/sentence.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import {
  type DeployTargetRow,
  findTargetCertificate,
  getDeployTarget,
  type ListedTargetCertificateRow,
  listTargetCertificates,
  nextDueTargetCertificate,
} from '../../db/tables/deploy-targets.ts';
import type { OutboundGuard } from '../../net/outbound-guard.ts';
import type { Outbound } from '../../net/outbound-http.ts';
import { type Material, type Target, TargetError } from '../../targets/target.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { LogContext, SecretsContext, TimedContext } from '../contexts.ts';
import { openVersionKey } from '../versions/versions.ts';
import { type Outcome, storeOutcome, storeUnlessDueAgain } from './deploy-outcomes.ts';
import { openTargetSettings, requireDeployTarget, requireType } from './deploy-targets.ts';

export type DeployContext = SecretsContext &
  LogContext & { readonly outbound: Outbound; readonly guard: OutboundGuard };

/** A certificate of a target. */
export type DueDeploy = NonNullable<Awaited<ReturnType<typeof nextDueTargetCertificate>>>;

/** The longest overdue installation on another target than those with the ids `except`. */
export function nextDueDeploy(
  { db, world }: TimedContext,
  except: readonly number[],
): Promise<DueDeploy | undefined> {
  return nextDueTargetCertificate(db.reader, world.now(), except);
}

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
    const { target, patience } = prepared(vault, row);
    canAsk = target.isInstalled !== undefined;
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
    if (outcome.error.cause === error)
      log.error({ err: error, target: row.name }, 'failed to deploy a certificate');
  }
  const after = { target: row, link, version, outcome, canAsk };
  await db.write((writer) => storeOutcome(vault, writer, after, actor));
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
 * Deploys one certificate of a target now, for a person who waits. Throws `deploy_target_not_found`,
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
  if (failure !== undefined) {
    const { message } = failure;
    throw new Problem('deploy_failed', { detail: sentence(message), commandLine: { message } });
  }
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

/** Throws TargetError if the settings cannot be read or do not fit, and OperatorError for an unknown type. */
function prepared(
  vault: DeployContext,
  row: DeployTargetRow,
): { readonly target: Target; readonly patience: number } {
  const type = requireType(row.type);
  try {
    const config = openTargetSettings(vault, row);
    return { target: type.create(config, vault), patience: type.patience(config) };
  } catch (error) {
    throw new TargetError('the settings of the deploy target cannot be read; replace them', { cause: error });
  }
}

function asTargetError(error: unknown): TargetError {
  if (error instanceof TargetError) return error;
  if (error instanceof OperatorError) return new TargetError(error.message);
  if (error instanceof Problem) return new TargetError(error.message.replace(/\.$/, ''));
  return new TargetError('internal error; see the log of the vault', { cause: error });
}
