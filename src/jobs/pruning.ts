/**
 * Prunes once an hour: audit events, if a retention period is set, deleted certificates and superseded versions with
 * their keys, past orders of ACME clients, and silent deployments. After the clock jumped, it waits until the clock has
 * been steady for a while, because what is pruned cannot be recovered.
 */
import { hour } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { pruneOrders } from '../domain/acme-server/orders/order-retention.ts';
import { pruneAuditLog } from '../domain/audit/audit-retention.ts';
import { purgeExpired } from '../domain/certificates/certificate-purging.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { pruneDeployments } from '../domain/deployments/deployments.ts';
import { observeClock } from '../domain/schedule/steady-clock.ts';
import { pruneVersions } from '../domain/versions/version-pruning.ts';

/** How long to keep, in milliseconds. */
export type Retention = {
  /** Undefined to keep them forever. */
  readonly auditEvents: number | undefined;
  readonly deletedCertificates: number;
  /** Versions of a certificate, not milliseconds. */
  readonly versions: number;
};

/** Runs until `signal` is aborted. Logs errors and retries an hour later. */
export async function runPruning(
  vault: LoggedContext,
  retention: Retention,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    try {
      const { steadyAt, jumped } = await observeClock(vault);
      if (jumped) log.warn({ resumes_at: formatTimestamp(steadyAt) }, 'clock jumped; pruning paused');
      if (world.now() >= steadyAt) await prune(vault, retention, signal);
    } catch (error) {
      log.error({ err: error }, 'pruning failed; retrying in an hour');
    }
    await world.sleep(hour, signal);
  }
}

async function prune(
  vault: LoggedContext,
  { auditEvents, deletedCertificates, versions: kept }: Retention,
  signal: AbortSignal,
): Promise<void> {
  const certificates = await purgeExpired(vault, deletedCertificates, signal);
  if (certificates > 0) vault.log.info({ certificates }, 'expired deleted certificates purged');
  const versions = await pruneVersions(vault, kept, signal);
  if (versions > 0) vault.log.info({ versions }, 'superseded versions pruned');
  const orders = await pruneOrders(vault, signal);
  if (orders > 0) vault.log.info({ orders }, 'past orders of ACME clients pruned');
  const deployments = await pruneDeployments(vault, signal);
  if (deployments > 0) vault.log.info({ deployments }, 'silent deployments pruned');
  const events = auditEvents === undefined ? 0 : await pruneAuditLog(vault, auditEvents, signal);
  if (events > 0) vault.log.info({ events }, 'expired audit events pruned');
}
