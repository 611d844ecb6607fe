/** The small jobs that repeat one task until the server stops; jobs with more to do have files of their own. */
import { day, hour, minute, second } from '../base/duration.ts';
import { describeFileError } from '../base/system-error.ts';
import { formatTimestamp } from '../base/timestamp.ts';
import type { KeyUse } from '../domain/access/key-use.ts';
import type { Refusals } from '../domain/access/refusals.ts';
import { pruneNonces } from '../domain/acme-server/orders/order-retention.ts';
import type {
  KeyringContext,
  LogContext,
  LoggedContext,
  SecretsContext,
  WorldContext,
} from '../domain/contexts.ts';
import { type MarkedState, updateMark } from '../domain/instance/served-vault.ts';
import type { CaContext, ChallengeContext } from '../domain/issuance-contexts.ts';
import type { LeadershipContext } from '../domain/nodes/leadership.ts';
import { type OwnNode, recordNode } from '../domain/nodes/nodes.ts';
import { removeLeftoverChallenges } from '../domain/orders/challenge-removal.ts';
import { type CaExpiry, caExpiries, listPrivateCas } from '../domain/private-ca/ca-expiry.ts';
import type { QueueContext } from '../domain/renewals/renewal-queue.ts';
import { queueDueRenewals } from '../domain/renewals/renewals.ts';
import { queryDueWindows } from '../domain/schedule/renewal-windows.ts';

/** Challenge records that crashes and failed removals left behind are removed at the start, and this often. */
const cleanEvery = 30 * minute;

/** Certificates whose renewal windows are queried per minute; the others wait for the next round. */
const windowsPerMinute = 100;

/**
 * Queries the renewal windows of certificates (ARI, RFC 9773) as often as each CA says. Runs until `signal` is
 * aborted. Logs errors and retries a minute later.
 */
export function runWindowWatcher(
  vault: LoggedContext & QueueContext & CaContext,
  signal: AbortSignal,
): Promise<void> {
  return repeat(vault, signal, {
    every: minute,
    work: async () => {
      const updated = await queryDueWindows(vault, windowsPerMinute, signal);
      // Queue early renewals that a CA asked for without waiting for the scheduler.
      if (updated > 0 && !signal.aborted) await queueDueRenewals(vault, windowsPerMinute);
    },
    failed: (error) => vault.log.error({ err: error }, 'failed to update renewal windows; retrying'),
  });
}

/**
 * Removes leftover challenge records. Runs until `signal` is aborted, then stops the removals of this process that
 * are still running. Logs errors and retries in the next round. A round that takes longer than that goes on beside
 * the next, which leaves its records to it: one provider that is slow must not delay the others.
 */
export async function runChallengeCleaner(vault: ChallengeContext, signal: AbortSignal): Promise<void> {
  const stop = () => void vault.removals.end();
  signal.addEventListener('abort', stop, { once: true });
  const rounds = new Set<Promise<void>>();
  while (!signal.aborted) {
    const round = removeLeftovers(vault).finally(() => rounds.delete(round));
    rounds.add(round);
    await vault.world.sleep(cleanEvery, signal);
  }
  await vault.removals.end();
  await Promise.all(rounds);
}

async function removeLeftovers(vault: ChallengeContext): Promise<void> {
  try {
    const left = await removeLeftoverChallenges(vault);
    if (left > 0) vault.log.info({ records: left }, 'leftover challenge records removed');
  } catch (error) {
    vault.log.error({ err: error }, 'failed to remove leftover challenge records; retrying in half an hour');
  }
}

/**
 * Prunes the used nonces of the ACME server: at full speed there are hundreds of thousands of them in an hour. Runs
 * until `signal` is aborted. Logs errors and retries in the next round.
 */
export function runNoncePruning(vault: LoggedContext, signal: AbortSignal): Promise<void> {
  return repeat(vault, signal, {
    every: 5 * minute,
    work: () => pruneNonces(vault, signal),
    failed: (error) =>
      vault.log.error({ err: error }, 'failed to prune used ACME nonces; retrying in five minutes'),
  });
}

/**
 * Logs at the start and once a day which private CAs stop issuing unless a person acts. Runs until `signal` is
 * aborted. Logs errors and retries an hour later.
 */
export function runPrivateCaLog(vault: LoggedContext, signal: AbortSignal): Promise<void> {
  return repeat(vault, signal, {
    every: day,
    afterFailure: hour,
    work: () => logExpiries(vault),
    failed: (error) =>
      vault.log.error({ err: error }, 'failed to query the expiry of private CAs; retrying in an hour'),
  });
}

async function logExpiries(vault: LoggedContext): Promise<void> {
  const expiring: CaExpiry[] = [];
  for (const ca of await listPrivateCas(vault.db.reader)) {
    expiring.push(...(await caExpiries(vault, ca)).filter(({ level }) => level > 0));
    await vault.world.turn();
  }
  for (const { name, role, notAfter, urgency, fix } of expiring) {
    vault.log.warn(
      { private_ca: name, expires_at: formatTimestamp(notAfter), fix },
      `${role} of private CA ${urgency === 'over' ? 'has expired' : 'expires soon'}`,
    );
  }
}

/**
 * Remembers the end of the audit log and reports a step back: every process checks that the log still has what it
 * saw. Runs until `signal` is aborted. Logs errors and retries.
 */
export function runLogEndWatcher({ db, world, log }: LoggedContext, signal: AbortSignal): Promise<void> {
  return repeat({ world }, signal, {
    every: minute,
    work: () => db.observeLog(),
    failed: (error) =>
      log.warn({ err: error }, 'failed to read the end of the audit log; retrying in a minute'),
  });
}

/**
 * Writes the end of the audit log to the server log, which is another place than the database: at the start and
 * every hour. Runs until `signal` is aborted. Logs errors and retries an hour later.
 */
export function runLogEndReport({ db, world, log }: LoggedContext, signal: AbortSignal): Promise<void> {
  return repeat({ world }, signal, {
    every: hour,
    work: async () => {
      const end = await db.observeLog();
      if (end !== undefined)
        log.info({ event: end.id, hash: end.link.toString('hex') }, 'end of the audit log');
    },
    failed: (error) =>
      log.warn({ err: error }, 'failed to read the end of the audit log; retrying in an hour'),
  });
}

/**
 * Records that this node of a shared database runs. The server removes the record when it stops. Runs until
 * `signal` is aborted. Logs the first failure in a row, and retries.
 */
export function runNodeRecorder(
  vault: LeadershipContext & KeyringContext & WorldContext & LogContext,
  node: OwnNode,
  signal: AbortSignal,
): Promise<void> {
  let hasFailed = false;
  return repeat(vault, signal, {
    every: 5 * second,
    work: async () => {
      await recordNode(vault, node);
      hasFailed = false;
    },
    failed: (error) => {
      if (!hasFailed) vault.log.warn({ err: error }, 'failed to record that this node runs; retrying');
      hasFailed = true;
    },
  });
}

/**
 * Records the last use of API keys in the background, so that no request waits for it. Runs until `signal` is
 * aborted, and writes once more at the end.
 */
export function runKeyUseWriter(
  vault: WorldContext & LogContext & { readonly keyUse: KeyUse },
  signal: AbortSignal,
): Promise<void> {
  return repeat(vault, signal, {
    every: 5 * second,
    first: 'after a wait',
    last: 'when stopped',
    work: () => vault.keyUse.write(),
    failed: (error) => vault.log.warn({ err: error }, 'failed to record the last use of API keys; retrying'),
  });
}

/**
 * Records refusals that were only counted, once their hour is over. Runs until `signal` is aborted; remaining
 * counts are written when the vault closes.
 */
export function runRefusalWriter(
  vault: WorldContext & LogContext & { readonly refusals: Refusals },
  signal: AbortSignal,
): Promise<void> {
  return repeat(vault, signal, {
    every: minute,
    first: 'after a wait',
    work: () => vault.refusals.write('due'),
    failed: (error) =>
      vault.log.warn({ err: error }, 'failed to record counted refusals; retrying in a minute'),
  });
}

/**
 * Updates the mark beside the database, so that a lost write-ahead log can hide at most one minute. Runs until
 * `signal` is aborted. Logs errors and retries.
 */
export function runMarkWriter(vault: SecretsContext & LogContext, signal: AbortSignal): Promise<void> {
  let last: MarkedState | undefined;
  return repeat(vault, signal, {
    every: minute,
    // The server wrote the first mark at its start.
    first: 'after a wait',
    work: async () => {
      last = await updateMark(vault, { last });
    },
    failed: (error) => {
      last = undefined;
      vault.log.warn({ reason: describeFileError(error) }, 'failed to write the mark of the database');
    },
  });
}

type Rounds = {
  readonly every: number;
  /** The wait after a failed round, if it is another. */
  readonly afterFailure?: number;
  /** Without it, the first round begins immediately. */
  readonly first?: 'after a wait';
  /** One more round follows if the stop comes during a wait. */
  readonly last?: 'when stopped';
  readonly work: () => Promise<unknown>;
  /** Logs the error of a round. */
  readonly failed: (error: unknown) => void;
};

/** Does the work in rounds, one after another, until `signal` is aborted. A failed round is followed by the next. */
async function repeat({ world }: WorldContext, signal: AbortSignal, rounds: Rounds): Promise<void> {
  const { every, afterFailure = every, first, last, work, failed } = rounds;
  let wait = first === undefined ? 0 : every;
  while (!signal.aborted) {
    if (wait > 0) await world.sleep(wait, signal);
    if (signal.aborted && last === undefined) return;
    wait = every;
    try {
      await work();
    } catch (error) {
      failed(error);
      wait = afterFailure;
    }
  }
}
