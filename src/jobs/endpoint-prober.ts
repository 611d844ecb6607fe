/**
 * Checks endpoints when they are due: each in the interval that is set for it, sooner after a renewal and after a
 * failure. One node does it for all.
 */
import { second } from '../base/duration.ts';
import { Problem } from '../base/problem.ts';
import { Signal } from '../base/signal.ts';
import type { LogContext } from '../domain/contexts.ts';
import {
  type CheckContext,
  checkEndpoint,
  type DueCheck,
  dueChecks,
} from '../domain/endpoints/endpoint-checking.ts';

/** Checks at a time: each waits for a network most of the time. */
const checksAtOnce = 32;

const lookEvery = 5 * second;

/** Runs until `signal` is aborted and the last check has ended. Logs errors and retries. */
export async function runEndpointProber(
  vault: CheckContext & LogContext,
  signal: AbortSignal,
): Promise<void> {
  const { world, log } = vault;
  const running = new Map<number, Promise<void>>();
  /** For what endpoints were due whose last check may not be written yet: they are not due again. */
  const done = new Map<number, string>();
  const ended = new Signal(world);
  let hasFailed = false;
  const check = async (due: DueCheck) => {
    try {
      await checkEndpoint(vault, due.id, signal);
      done.set(due.id, causeOf(due));
    } catch (error) {
      const isRemoved = error instanceof Problem && error.code === 'endpoint_not_found';
      if (!signal.aborted && !isRemoved) {
        log.error({ err: error, endpoint: due.id }, 'failed to check an endpoint; retrying');
        hasFailed = true;
      }
    } finally {
      running.delete(due.id);
      ended.notify();
    }
  };
  while (!signal.aborted) {
    let isBehind = false;
    hasFailed = false;
    try {
      const rows = await dueChecks(vault, running.size + done.size + checksAtOnce);
      const causes = new Map(rows.map((row) => [row.id, causeOf(row)]));
      for (const [id, cause] of done) if (causes.get(id) !== cause) done.delete(id);
      const waiting = rows.filter(({ id }) => !running.has(id) && !done.has(id));
      const started = waiting.slice(0, checksAtOnce - running.size);
      for (const row of started) running.set(row.id, check(row));
      isBehind = started.length < waiting.length;
    } catch (error) {
      log.error({ err: error }, 'failed to query due endpoints; retrying');
    }
    if (isBehind) await ended.wait(lookEvery, signal);
    if (!isBehind || hasFailed) await world.sleep(lookEvery, signal);
  }
  await Promise.all(running.values());
}

function causeOf({ revision, next_check_at: dueAt }: DueCheck): string {
  return `${revision} ${dueAt}`;
}
