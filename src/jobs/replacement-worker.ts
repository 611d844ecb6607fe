/** Carries out emergency replacements. One node does it for all. */
import { second } from '../base/duration.ts';
import type { LogContext } from '../domain/contexts.ts';
import { type ReplacementContext, workReplacements } from '../domain/replacements/replacement-round.ts';

const lookEvery = 5 * second;

/** Runs until `signal` is aborted. Logs errors and retries. */
export async function runReplacementWorker(
  vault: ReplacementContext & LogContext,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  while (!signal.aborted) {
    let isBehind = false;
    try {
      isBehind = await workReplacements(vault, signal);
    } catch (error) {
      if (!signal.aborted) log.error({ err: error }, 'failed to work on replacements; retrying');
    }
    if (isBehind) await world.turn();
    else await world.sleep(lookEvery, signal);
  }
}
