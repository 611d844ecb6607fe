/**
 * What the processes that serve one vault hold in common beside the database, so that what is limited is limited for all of
 * them together. A process that serves alone has none.
 */
import type { KeyCount, ReportCount } from './key-limits.ts';
import type { SignInPauses } from './sign-in-backoff.ts';

export type PeerWorkers = {
  /** Attempts at passwords are counted in one place, before they are made. */
  readonly signInPauses: SignInPauses;
  /** Requests and failures of API keys are counted here at once, and told to the others a moment later. */
  readonly tellTaken: ReportCount;
  /** Is to be called with what the others told, before the first request. */
  readonly hearTaken: (listener: (count: KeyCount, name: string, times: number) => void) => void;
  /** What the keys of session tickets are made of (`TicketSeed` of http/), so that any process can resume a session. */
  readonly ticketSeed: () => Buffer;
};
