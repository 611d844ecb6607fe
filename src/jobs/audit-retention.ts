/** Prunes the audit log where a setting says how long it is kept: looks once an hour, and goes on where it was cut off. */
import { hour } from '../base/duration.ts';
import { pruneAuditLog } from '../domain/audit-retention.ts';
import type { Vault } from '../domain/vault.ts';

/** Runs until `signal` is aborted. What goes wrong is logged and tried again. */
export async function runAuditRetention(vault: Vault, keepFor: number, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    try {
      const removed = await pruneAuditLog(vault, keepFor, signal);
      if (removed > 0) log.info({ events: removed }, 'old audit events were removed');
    } catch (error) {
      log.error({ err: error }, 'the audit log could not be pruned; trying again in an hour');
    }
    await world.sleep(hour, signal);
  }
}
