/** What issuing a certificate needs of its renewal, and what it leaves there. Renewals make one for each attempt. */
import type { Writer } from '../../db/database.ts';
import type { RenewalStep } from '../../db/schema/schema-renewals.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import type { RenewalChanges, RenewalRow } from '../../db/tables/renewals/renewals.ts';

/** Why an attempt stops: the vault stops, another worker has it, it timed out, or the certificate was changed. */
export type StopReason = 'shutdown' | 'lease lost' | 'deadline' | 'superseded';

export type OrderProgress = {
  readonly certificate: CertificateRow;
  /** As it was when the attempt began. */
  readonly renewal: RenewalRow;
  /** Aborted with a StopReason. */
  readonly signal: AbortSignal;
  readonly stop: (reason: StopReason) => void;
  /** Extends the deadline of the attempt by this many milliseconds. */
  readonly extend: (ms: number) => void;
  /** The steps so far, including those of earlier workers. */
  readonly steps: readonly Step[];
  /** Records the current step, for people who watch or review the renewal. Rejects as `save`. */
  readonly step: (text: string) => Promise<void>;
  /** The renewal as it is now; undefined if it was deleted with its certificate. */
  readonly read: () => Promise<RenewalRow | undefined>;
  /** Stores changes to the renewal. If another worker has it by then, stops the attempt and rejects with LeaseLost. */
  readonly save: (changes: RenewalChanges) => Promise<void>;
  /** Runs `work` in a transaction, if no other worker has the renewal by then. Rejects as `save`. */
  readonly write: <T>(work: (writer: Writer) => Promise<T>) => Promise<T>;
};

/** A step of a renewal, as its row keeps it. */
export type Step = RenewalStep;

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
