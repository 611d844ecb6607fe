/** Records refusals that were only counted, once their hour is over. */
import { minute } from '../base/duration.ts';
import type { Refusals } from '../domain/access/refusals.ts';
import type { LogContext, WorldContext } from '../domain/contexts.ts';

/** Runs until `signal` is aborted; remaining counts are written when the vault closes. */
export async function runRefusalWriter(
  vault: WorldContext & LogContext & { readonly refusals: Refusals },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await vault.world.sleep(minute, signal);
    if (signal.aborted) return;
    try {
      await vault.refusals.write('due');
    } catch (error) {
      vault.log.warn({ err: error }, 'failed to record counted refusals; retrying in a minute');
    }
  }
}
