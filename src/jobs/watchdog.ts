/**
 * The sign of life for whoever restarts a vault that hangs. It is given only by a vault that works: a timer alone would go
 * on while nothing else does.
 */
import { type ReadinessContext, readiness } from '../domain/doctor/readiness.ts';

/**
 * Looks at the vault twice in each `interval` (milliseconds) until `signal` is aborted, and hands on the names of the checks
 * that are not passed. Where the database does not answer at all, or the event loop does not turn, nothing is handed on.
 */
export async function runWatchdog(
  vault: ReadinessContext,
  interval: number,
  signOfLife: (failed: readonly string[]) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await vault.world.sleep(interval / 2, signal);
    if (signal.aborted) return;
    const { checks } = await readiness(vault);
    const failed = Object.entries(checks).flatMap(([check, result]) => (result === 'ok' ? [] : check));
    await signOfLife(failed);
  }
}
