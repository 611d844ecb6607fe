/** Records the last use of API keys in the background, so that no request waits for it. */
import { second } from '../base/duration.ts';
import type { KeyUse } from '../domain/access/key-use.ts';
import type { LogContext, WorldContext } from '../domain/contexts.ts';

/** Runs until `signal` is aborted, and writes once more at the end. */
export async function runKeyUseWriter(
  vault: WorldContext & LogContext & { readonly keyUse: KeyUse },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await vault.world.sleep(5 * second, signal);
    try {
      await vault.keyUse.write();
    } catch (error) {
      vault.log.warn({ err: error }, 'failed to record the last use of API keys; retrying');
    }
  }
}
