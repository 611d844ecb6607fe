/** Records refusals that were only counted, once their hour is over. */
import { minute } from '../base/duration.ts';
import type { Vault } from '../domain/vault.ts';

/** Runs until `signal` is aborted; remaining counts are written when the vault closes. */
export async function runRefusalWriter(vault: Vault, signal: AbortSignal): Promise<void> {
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
