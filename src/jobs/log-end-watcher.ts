/**
 * Watches the end of the audit log: every process checks once a minute that the log still has what it saw, and one of them writes
 * the end to the server log, which is another place than the database.
 */
import { hour, minute } from '../base/duration.ts';
import type { LoggedContext } from '../domain/contexts.ts';

/** Remembers the end of the log and reports a step back. Runs until `signal` is aborted. Logs errors and retries. */
export async function runLogEndWatcher(
  { db, world, log }: LoggedContext,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await db.observeLog();
    } catch (error) {
      log.warn({ err: error }, 'failed to read the end of the audit log; retrying in a minute');
    }
    await world.sleep(minute, signal);
  }
}

/** Logs the end of the log, at the start and every hour. Runs until `signal` is aborted. Logs errors and retries an hour later. */
export async function runLogEndReport({ db, world, log }: LoggedContext, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      const end = await db.observeLog();
      if (end !== undefined)
        log.info({ event: end.id, hash: end.link.toString('hex') }, 'end of the audit log');
    } catch (error) {
      log.warn({ err: error }, 'failed to read the end of the audit log; retrying in an hour');
    }
    await world.sleep(hour, signal);
  }
}
