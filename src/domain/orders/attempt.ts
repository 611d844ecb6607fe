/** One attempt at a renewal, with its lease and its stored progress. */

import type { Writer } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { type RenewalChanges, type RenewalRow, updateLeased } from '../../db/tables/renewals/renewals.ts';
import type { DatabaseContext, LoggedContext } from '../contexts.ts';

/** Why an attempt stops: the vault stops, another worker has it, it timed out, or the certificate was changed. */
export type StopReason = 'shutdown' | 'lease lost' | 'deadline' | 'superseded';

export type ClaimedRenewal = { readonly renewal: RenewalRow; readonly owner: string };

export type Attempt = ClaimedRenewal & {
  readonly certificate: CertificateRow;
  /** Aborted with a StopReason. */
  readonly signal: AbortSignal;
  /** Extends the deadline of the attempt by this many milliseconds, if it has one. */
  readonly extend?: (ms: number) => void;
  /** Stops the attempt because another worker has the renewal. */
  readonly loseLease?: () => void;
  /** The steps so far, including those of earlier workers. */
  readonly steps: Step[];
};

/** Another worker has the renewal, or it was deleted with its certificate. */
export class LeaseLost extends Error {
  constructor() {
    super('the lease of the renewal was lost');
    this.name = 'LeaseLost';
  }
}

/** The certificate was changed during the order; this renewal ends and a new one starts. */
export class Superseded extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'Superseded';
  }
}

/** Stores progress. If another worker has the lease, aborts the attempt and throws LeaseLost. */
export async function keep(
  { db }: DatabaseContext,
  { renewal, owner, loseLease }: ClaimedRenewal & Pick<Attempt, 'loseLease'>,
  changes: RenewalChanges | ((writer: Writer) => Promise<RenewalChanges>),
): Promise<void> {
  const kept = await db.write(async (writer) =>
    updateLeased(writer, renewal.id, owner, typeof changes === 'function' ? await changes(writer) : changes),
  );
  if (kept) return;
  // Abort first: cleanup after the error must see that the records now belong to the next worker.
  loseLease?.();
  throw new LeaseLost();
}

/** A step of a renewal, at a time in UTC milliseconds. */
export type Step = { readonly at: number; readonly text: string };

/** Steps kept per renewal, so that an order with many interruptions does not fill the table. */
const mostSteps = 100;

/** The recorded steps of a renewal, oldest first. */
export function stepsOf({ steps }: Pick<RenewalRow, 'steps'>): readonly Step[] {
  return steps === null ? [] : (JSON.parse(steps) as Step[]);
}

/** Records the current step, for people who watch or review the renewal. */
export async function step(vault: LoggedContext, attempt: Attempt, text: string): Promise<void> {
  const { certificate, renewal, steps } = attempt;
  if (steps.at(-1)?.text === text) return;
  steps.push({ at: vault.world.now(), text });
  if (steps.length > mostSteps) steps.shift();
  await keep(vault, attempt, { steps: JSON.stringify(steps) });
  vault.log.debug({ certificate: certificate.name, renewal: renewal.id }, `renewal step: ${text}`);
}
