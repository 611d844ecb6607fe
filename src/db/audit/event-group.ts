/** Audit events that share a transaction where writes run in the calling thread: those that arrive until it begins. */
import type { NewAuditEvent } from './audit-insertion.ts';

/** Adds the events that `next` returns, in a transaction, and calls it once that has begun. */
type Transact = (next: () => readonly NewAuditEvent[]) => Promise<void>;

type Group = { readonly events: NewAuditEvent[]; readonly recorded: Promise<void> };

/** Bounds the time that a transaction takes. */
const maxEvents = 500;

export class EventGroup {
  readonly #transact: Transact;
  /** Waits for its transaction to begin. */
  #group: Group | undefined;

  constructor(transact: Transact) {
    this.#transact = transact;
  }

  /** Resolves once the events are durable; rejects with what keeps them from it. */
  append(events: readonly NewAuditEvent[]): Promise<void> {
    if (this.#group === undefined || this.#group.events.length >= maxEvents) this.#group = this.#begin();
    this.#group.events.push(...events);
    return this.#group.recorded;
  }

  #begin(): Group {
    const events: NewAuditEvent[] = [];
    const close = () => {
      if (this.#group?.events === events) this.#group = undefined;
    };
    const transact = async () => {
      try {
        await this.#transact(() => {
          close();
          return events;
        });
      } finally {
        // A transaction that cannot begin takes no more events, either.
        close();
      }
    };
    return { events, recorded: transact() };
  }
}
