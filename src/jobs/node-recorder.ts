/** Records every five seconds that this node of a shared database runs. The server removes the record when it stops. */
import { second } from '../base/duration.ts';
import type { KeyringContext, LogContext, WorldContext } from '../domain/contexts.ts';
import type { LeadershipContext } from '../domain/nodes/leadership.ts';
import { type OwnNode, recordNode } from '../domain/nodes/nodes.ts';

const recordEvery = 5 * second;

/** Runs until `signal` is aborted. Logs the first failure in a row, and retries. */
export async function runNodeRecorder(
  vault: LeadershipContext & KeyringContext & WorldContext & LogContext,
  node: OwnNode,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  let hasFailed = false;
  while (!signal.aborted) {
    try {
      await recordNode(vault, node);
      hasFailed = false;
    } catch (error) {
      if (!hasFailed) log.warn({ err: error }, 'failed to record that this node runs; retrying');
      hasFailed = true;
    }
    await world.sleep(recordEvery, signal);
  }
}
