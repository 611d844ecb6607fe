/**
 * The state that the processes of one vault share beside the database, so that rate limits apply to all of them together. A
 * process that serves alone has none.
 */
import type { KeyCount, ReportCount } from './key-limits.ts';
import type { SignInPauses } from './sign-in-backoff.ts';

export type PeerWorkers = {
  /** Sign-in attempts are counted in one process, before the password is checked. */
  readonly signInPauses: SignInPauses;
  /** Reports requests and failures of API keys, which were counted here, to the other processes a moment later. */
  readonly tellTaken: ReportCount;
  /** Registers the listener for counts of the other processes; call it before the first request. */
  readonly hearTaken: (listener: (count: KeyCount, name: string, times: number) => void) => void;
  /** The seed of the TLS session ticket keys (`TicketSeed` in http/), so that any process can resume a session. */
  readonly ticketSeed: () => Buffer;
};
