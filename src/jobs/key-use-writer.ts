/** Writes down, behind the requests, when each API key was last used. */
import { second } from '../base/duration.ts';
import type { KeyUse } from '../domain/access/key-use.ts';
import type { LogContext, WorldContext } from '../domain/contexts.ts';

/** Runs until `signal` is aborted, and writes a last time then. */
export async function runKeyUseWriter(
  vault: WorldContext & LogContext & { readonly keyUse: KeyUse },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await vault.world.sleep(5 * second, signal);
    try {
      await vault.keyUse.write();
    } catch (error) {
      vault.log.warn({ err: error }, 'the last use of API keys could not be written; trying again');
    }
  }
}
