/** Watches the open transaction of another thread: all processes wait for its write lock. */
import { StorageError } from '../../base/storage-error.ts';
import type { World } from '../../base/world.ts';

/**
 * A transaction without a request for three seconds is abandoned: the event loop has stalled. A busy machine holds it
 * up for more than a second, and other processes wait five for the lock.
 */
const tickMs = 500;
const maxQuietTicks = 6;

export class TransactionGuard {
  readonly #world: Pick<World, 'sleep' | 'turn'>;
  readonly #onSilence: () => Promise<void>;
  readonly #closing = new AbortController();
  /** Counts requests instead of reading a clock, which may jump. */
  #requests = 0;
  #isOpen = false;
  #isWatching = false;
  #isAbandoned = false;

  /** `onSilence` rolls back. */
  constructor(world: Pick<World, 'sleep' | 'turn'>, onSilence: () => Promise<void>) {
    this.#world = world;
    this.#onSilence = onSilence;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** A transaction begins. */
  begin(): void {
    this.#isOpen = true;
    this.#isAbandoned = false;
    this.heard();
    void this.#watch();
  }

  /** The transaction began, or a request of it arrived. */
  heard(): void {
    this.#requests += 1;
  }

  /** Throws StorageError in a transaction that was abandoned. */
  require(): void {
    if (!this.#isAbandoned) return;
    throw new StorageError('transaction rolled back: the server stalled for more than three seconds');
  }

  /** The transaction ends. */
  end(): void {
    this.#isOpen = false;
    this.#isAbandoned = false;
  }

  /** No further transaction begins. */
  close(): void {
    this.#closing.abort();
  }

  async #watch(): Promise<void> {
    if (this.#isWatching) return;
    this.#isWatching = true;
    let quiet = 0;
    while (this.#isOpen && !this.#closing.signal.aborted) {
      const before = this.#requests;
      // In ticks: one of them may have passed while the whole process was suspended.
      await this.#world.sleep(tickMs, this.#closing.signal);
      // A request may have arrived meanwhile, and is handled first.
      await this.#world.turn();
      quiet = this.#requests === before ? quiet + 1 : 0;
      if (quiet < maxQuietTicks || !this.#isOpen) continue;
      this.#isOpen = false;
      this.#isAbandoned = true;
      await this.#onSilence();
    }
    this.#isWatching = false;
  }
}
