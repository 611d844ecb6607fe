/**
 * Reports to the process supervisor that the vault works, after checking its readiness. A plain timer would keep
 * running in a vault that hangs.
 */
import { type ReadinessContext, readiness } from '../domain/doctor/readiness.ts';

/**
 * Checks the vault twice per `interval` (milliseconds) until `signal` is aborted, and passes the names of failed checks
 * to `report`. Reports nothing while the database or the event loop hangs, or while all that is missing is the first
 * heartbeat of the renewal engine, which starts beside it.
 */
export async function runWatchdog(
  vault: ReadinessContext,
  interval: number,
  report: (failed: readonly string[]) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await vault.world.sleep(interval / 2, signal);
    if (signal.aborted) return;
    // A restart makes no space on a disk, and polls are answered without any.
    const { checks } = await readiness(vault, { mustRecord: false });
    const failed = Object.entries(checks).flatMap(([check, result]) => (result === 'ok' ? [] : check));
    const isStarting = !vault.renewalHeartbeat.hasBegun && failed.join() === 'renewal_engine';
    if (!isStarting) await report(failed);
  }
}
