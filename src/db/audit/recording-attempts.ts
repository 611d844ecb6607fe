/** Whether audit events can be recorded, with attempts to write if the last events could not. */
import type { World } from '../../base/world.ts';

/** Between two failed attempts: readiness checks, which cause them, need no credentials. */
const pauseMs = 1000;

export class RecordingAttempts {
  readonly #attempt: () => Promise<void>;
  /** Whether the last events were recorded. */
  #canRecord = true;
  #running: Promise<void> | undefined;
  /** When the last attempt failed. */
  #failedAt: number | undefined;

  /** `attempt` writes as much as events need, or more: a smaller write may still fit into the write-ahead log. */
  constructor(attempt: () => Promise<void>) {
    this.#attempt = attempt;
  }

  /** Learns whether events were recorded. */
  observe(recorded: Promise<void>): void {
    recorded.then(
      () => {
        this.#canRecord = true;
      },
      () => {
        this.#canRecord = false;
      },
    );
  }

  /**
   * Rejects with the error of an attempt if the last events could not be recorded, and a write still fails. A failed
   * attempt counts for a second.
   */
  async require({ elapsed }: Pick<World, 'elapsed'>): Promise<void> {
    if (this.#canRecord) return;
    if (this.#failedAt !== undefined && elapsed() - this.#failedAt >= pauseMs)
      this.#running = this.#failedAt = undefined;
    this.#running ??= this.#attempt().then(
      () => {
        this.#canRecord = true;
        this.#running = undefined;
      },
      (error: unknown) => {
        this.#failedAt = elapsed();
        throw error;
      },
    );
    await this.#running;
  }
}
