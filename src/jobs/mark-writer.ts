/** Keeps the mark beside the database up to date, once a minute: what a lost log may hide is at most that much. */
import { minute } from '../base/duration.ts';
import type { LogContext, SecretsContext } from '../domain/contexts.ts';
import { type MarkedState, updateMark } from '../domain/presence/served-vault.ts';

/** Runs until `signal` is aborted. A mark that cannot be written is logged, and tried again. */
export async function runMarkWriter(vault: SecretsContext & LogContext, signal: AbortSignal): Promise<void> {
  let last: MarkedState | undefined;
  for (;;) {
    // A server has written it when it began.
    await vault.world.sleep(minute, signal);
    if (signal.aborted) return;
    try {
      last = await updateMark(vault, { last });
    } catch (error) {
      last = undefined;
      vault.log.warn({ reason: (error as Error).message }, 'failed to write the mark of the database');
    }
  }
}
