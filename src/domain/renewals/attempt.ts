/** One attempt at a renewal: its lease, its time limit, its stored progress, and the one signal that stops it. */
import { withDeadline } from '../../base/deadline.ts';
import { hour } from '../../base/duration.ts';
import { parseJsonOr, toJson } from '../../base/json.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import {
  findRenewal,
  type RenewalChanges,
  type RenewalRow,
  updateLeased,
} from '../../db/tables/renewals/renewals.ts';
import type { LoggedContext } from '../contexts.ts';
import { LeaseLost, type OrderProgress, type Step, type StopReason } from '../orders/order-progress.ts';

export type ClaimedRenewal = { readonly renewal: RenewalRow; readonly owner: string };

export type Attempt = ClaimedRenewal & OrderProgress;

/** Time limit of an attempt, without the time for presenting DNS records and waiting for their propagation. */
export const attemptTimeout = hour;

/** Steps kept per renewal, so that an order with many interruptions does not fill the table. */
const maxSteps = 100;

/**
 * Runs `work` as an attempt at the renewal. Its signal is aborted with the reason of `signal`, at the deadline, or by
 * `stop`.
 */
export async function withAttempt(
  vault: LoggedContext,
  claimed: ClaimedRenewal & { readonly certificate: CertificateRow },
  signal: AbortSignal,
  work: (attempt: Attempt) => Promise<void>,
): Promise<void> {
  await withDeadline(vault.world, attemptTimeout, signal, async (deadline) => {
    const over = new AbortController();
    const stop = (reason: StopReason) => over.abort(reason);
    const follow = () => stop(deadline.ended() === 'timeout' ? 'deadline' : (signal.reason as StopReason));
    deadline.signal.addEventListener('abort', follow, { once: true });
    if (deadline.signal.aborted) follow();
    const { extend } = deadline;
    await work({ ...claimed, ...progress(vault, claimed, stop), signal: over.signal, stop, extend });
  });
}

function progress(
  { db, world, log }: LoggedContext,
  { renewal, owner, certificate }: ClaimedRenewal & { readonly certificate: CertificateRow },
  stop: (reason: StopReason) => void,
): Pick<OrderProgress, 'steps' | 'step' | 'read' | 'save' | 'write'> {
  const steps = [...stepsOf(renewal)];
  const lost = (): LeaseLost => {
    // Before the error: the cleanup after it must see that the records now belong to the next worker.
    stop('lease lost');
    return new LeaseLost();
  };
  const save = async (changes: RenewalChanges) => {
    const kept = await db.write((writer) => updateLeased(writer, renewal.id, owner, changes));
    if (!kept) throw lost();
  };
  return {
    steps,
    step: async (text) => {
      if (steps.at(-1)?.text === text) return;
      steps.push({ at: world.now(), text });
      if (steps.length > maxSteps) steps.shift();
      await save({ steps: toJson(steps) });
      log.debug({ certificate: certificate.name, renewal: renewal.id }, `renewal step: ${text}`);
    },
    read: () => findRenewal(db.reader, renewal.id),
    save,
    write: (work) =>
      db.write(async (writer) => {
        // On PostgreSQL this also locks the row against other nodes.
        if (!(await updateLeased(writer, renewal.id, owner, { lease_owner: owner }))) throw lost();
        return work(writer);
      }),
  };
}

/** The recorded steps of a renewal, oldest first. */
export function stepsOf({ steps }: Pick<RenewalRow, 'steps'>): readonly Step[] {
  return parseJsonOr(steps, []);
}
