/** One attempt at a renewal: what is worked on, under which lease, and how its progress is put down. */

import type { Writer } from '../../db/database.ts';
import type { CertificateRow } from '../../db/tables/certificates.ts';
import { type RenewalChanges, type RenewalRow, updateLeased } from '../../db/tables/renewals.ts';
import type { DatabaseContext, LoggedContext } from '../contexts.ts';

/** Why an attempt is told to stop: the vault stops, another worker has it, it took too long, or nobody wants it any more. */
export type StopReason = 'shutdown' | 'lease lost' | 'deadline' | 'superseded';

export type ClaimedRenewal = { readonly renewal: RenewalRow; readonly owner: string };

export type Attempt = ClaimedRenewal & {
  readonly certificate: CertificateRow;
  /** Aborted with a StopReason. */
  readonly signal: AbortSignal;
  /** Puts the deadline of the attempt off by so many milliseconds, where it has one. */
  readonly extend?: (ms: number) => void;
  /** Stops everything that is under way for the attempt, because another worker has the renewal. */
  readonly loseLease?: () => void;
  /** What was done so far, also by earlier workers. */
  readonly steps: Step[];
};

/** Another worker has the renewal now, or it is gone with its certificate. */
export class LeaseLost extends Error {
  constructor() {
    super('the lease of the renewal was lost');
    this.name = 'LeaseLost';
  }
}

/** What was wanted has changed while it was being ordered; the renewal ends, and the next begins anew. */
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

/** What a renewal did at a moment (UTC milliseconds), in words. */
export type Step = { readonly at: number; readonly text: string };

/** More are not kept: an order that is interrupted again and again would fill the table. */
const mostSteps = 100;

/** The steps that were put down with a renewal, oldest first. */
export function stepsOf({ steps }: Pick<RenewalRow, 'steps'>): readonly Step[] {
  return steps === null ? [] : (JSON.parse(steps) as Step[]);
}

/** Says, for whoever waits or asks afterwards, what the attempt does now. */
export async function step(vault: LoggedContext, attempt: Attempt, text: string): Promise<void> {
  const { certificate, renewal, steps } = attempt;
  if (steps.at(-1)?.text === text) return;
  steps.push({ at: vault.world.now(), text });
  if (steps.length > mostSteps) steps.shift();
  await keep(vault, attempt, { steps: JSON.stringify(steps) });
  vault.log.debug({ certificate: certificate.name, renewal: renewal.id }, `renewal step: ${text}`);
}
