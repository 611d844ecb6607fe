/**
 * The end of the audit log as this process last saw it. The sealed mark is a row of the database: an attacker can save
 * it, and put it back after deleting the events above it. A process that remembers a later end notices that.
 */
import type { ChainEnd } from './audit-chain.ts';

/** Events that this process saw, and that the log no longer has. */
export type LostEvents = { readonly from: number; readonly to: number };

export class LogMemory {
  #end: ChainEnd | undefined;
  #reportedTo = 0;
  /** Called once for each step back of the log. */
  onLost: ((lost: LostEvents) => void) | undefined;

  /** The newest event that is known to be durable. */
  get end(): ChainEnd | undefined {
    return this.#end;
  }

  /** Call it once the transaction that ends with this event is durable, or after reading the mark. */
  learn(end: ChainEnd): void {
    if (this.#end === undefined || end.id > this.#end.id) this.#end = end;
  }

  /** The answers to several appends may report the same events. */
  report(lost: LostEvents): void {
    if (lost.to <= this.#reportedTo) return;
    this.#reportedTo = lost.to;
    this.onLost?.(lost);
  }
}
