/** Runs scans of networks when they are due, several at a time, so that no slow one holds up the others. */
import { minute, second } from '../base/duration.ts';
import type { LogContext } from '../domain/contexts.ts';
import { nextScan, type ScanContext, workOnScan } from '../domain/scans/scanning.ts';
import { TasksInHand } from './tasks-in-hand.ts';

const lookEvery = 5 * second;

/** Each may have up to 600 open connections. */
const scansAtOnce = 4;

/** Runs until `signal` is aborted. Logs errors and retries. One node does it for all. */
export async function runScanner(vault: ScanContext & LogContext, signal: AbortSignal): Promise<void> {
  const { world, log } = vault;
  // Room is noticed at the next look.
  const scans = new TasksInHand({ perGroup: 1, inAll: scansAtOnce }, () => undefined);
  const failed = (error: unknown) => {
    if (!signal.aborted) log.error({ err: error }, 'failed to scan a network; retrying');
  };
  while (!signal.aborted) {
    let pause = lookEvery;
    // One that fails immediately is tried again at the next look.
    const begun: number[] = [];
    try {
      await scans.fill(signal, async (running) => {
        const id = await nextScan(vault, [...running, ...begun]);
        if (id === undefined) return undefined;
        begun.push(id);
        return { group: id, ended: workOnScan(vault, id, signal).then(() => undefined, failed) };
      });
    } catch (error) {
      failed(error);
      pause = minute;
    }
    await world.sleep(pause, signal);
  }
  await scans.ended();
}
