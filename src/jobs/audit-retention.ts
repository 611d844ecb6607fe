/**
 * Prunes the audit log once an hour if a retention period is set. After the clock jumped, it waits until the clock has been
 * steady for a while, because pruned events cannot be recovered.
 */
import { hour } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { pruneAuditLog } from '../domain/audit/audit-retention.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { observeClock } from '../domain/health/steady-clock.ts';

/** Runs until `signal` is aborted. Logs errors and retries an hour later. */
export async function runAuditRetention(
  vault: LoggedContext,
  keepFor: number,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    try {
      const { steadyAt, jumped } = await observeClock(vault);
      if (jumped) {
        log.warn({ resumes_at: formatTimestamp(steadyAt) }, 'clock jumped; audit pruning paused');
      }
      const removed = world.now() < steadyAt ? 0 : await pruneAuditLog(vault, keepFor, signal);
      if (removed > 0) log.info({ events: removed }, 'expired audit events pruned');
    } catch (error) {
      log.error({ err: error }, 'failed to prune the audit log; retrying in an hour');
    }
    await world.sleep(hour, signal);
  }
}
