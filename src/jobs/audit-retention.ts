/**
 * Prunes the audit log where a setting says how long it is kept: looks once an hour, and goes on where it was cut off. A clock
 * that jumped has to prove itself first, because what was pruned does not come back.
 */
import { hour } from '../base/duration.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import { pruneAuditLog } from '../domain/audit/audit-retention.ts';
import type { LoggedContext } from '../domain/contexts.ts';
import { observeClock } from '../domain/health/steady-clock.ts';

/** Runs until `signal` is aborted. What goes wrong is logged and tried again. */
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
      if (removed > 0) log.info({ events: removed }, 'old audit events were removed');
    } catch (error) {
      log.error({ err: error }, 'the audit log could not be pruned; trying again in an hour');
    }
    await world.sleep(hour, signal);
  }
}
