/** Updates the mark beside the database once a minute, so that a lost write-ahead log can hide at most one minute. */
import { minute } from '../base/duration.ts';
import { describeFileError } from '../base/system-error.ts';
import type { LogContext, SecretsContext } from '../domain/contexts.ts';
import { type MarkedState, updateMark } from '../domain/instance/served-vault.ts';

/** Runs until `signal` is aborted. Logs errors and retries. */
export async function runMarkWriter(vault: SecretsContext & LogContext, signal: AbortSignal): Promise<void> {
  let last: MarkedState | undefined;
  for (;;) {
    // The server wrote the first mark at its start.
    await vault.world.sleep(minute, signal);
    if (signal.aborted) return;
    try {
      last = await updateMark(vault, { last });
    } catch (error) {
      last = undefined;
      vault.log.warn({ reason: describeFileError(error) }, 'failed to write the mark of the database');
    }
  }
}
