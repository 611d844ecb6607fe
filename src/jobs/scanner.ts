/** Runs scans of networks when they are due, one at a time. One node does it for all. */
import { minute, second } from '../base/duration.ts';
import type { LogContext } from '../domain/contexts.ts';
import { nextScan, type ScanContext, workOnScan } from '../domain/scans/scanning.ts';

const lookEvery = 5 * second;

/** Runs until `signal` is aborted. Logs errors and retries. */
export async function runScanner(vault: ScanContext & LogContext, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    let pause = lookEvery;
    try {
      const id = await nextScan(vault);
      if (id !== undefined) await workOnScan(vault, id, signal);
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'failed to scan a network; retrying');
      pause = minute;
    }
    await world.sleep(pause, signal);
  }
}
