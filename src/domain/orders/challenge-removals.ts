/** Tracks challenge removals that run in the background. */

export class ChallengeRemovals {
  readonly #running = new Set<Promise<void>>();
  readonly #rows = new Set<number>();
  #stop = new AbortController();

  /**
   * Starts `work` on the rows that are not already being removed. `work` must not reject and must obey the signal,
   * which is aborted when the process stops.
   */
  begin<Row extends { readonly id: number }>(
    rows: readonly Row[],
    work: (rows: readonly Row[], signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const mine = this.idleOf(rows);
    for (const { id } of mine) this.#rows.add(id);
    const running = work(mine, this.#stop.signal).finally(() => {
      for (const { id } of mine) this.#rows.delete(id);
      this.#running.delete(running);
    });
    this.#running.add(running);
    return running;
  }

  /** Those of the rows that are not being removed. */
  idleOf<Row extends { readonly id: number }>(rows: readonly Row[]): Row[] {
    return rows.filter(({ id }) => !this.#rows.has(id));
  }

  /** Resolves when no removal is running. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  /** Stops the running removals; their challenges stay in the table for the next process. */
  async end(): Promise<void> {
    this.#stop.abort();
    this.#stop = new AbortController();
    await this.idle();
  }
}
