/** The running tasks of a job, limited in total and per group, so that no group holds up the others. */

export type TaskLimits = { readonly perGroup: number; readonly inAll: number };

/** A running task; `ended` must not reject. */
export type Task = { readonly group: number; readonly ended: Promise<void> };

export class TasksInHand {
  readonly #limits: TaskLimits;
  readonly #onRoom: () => void;
  readonly #groups = new Map<Promise<void>, number>();

  /** `onRoom` is called whenever a task has ended. */
  constructor(limits: TaskLimits, onRoom: () => void) {
    this.#limits = limits;
    this.#onRoom = onRoom;
  }

  /**
   * Calls `begin` until it finds no more tasks or the limit is reached. `begin` gets the groups that are at their
   * limit.
   */
  async fill(
    signal: AbortSignal,
    begin: (fullGroups: readonly number[]) => Promise<Task | undefined>,
  ): Promise<void> {
    while (this.#groups.size < this.#limits.inAll && !signal.aborted) {
      const task = await begin(this.#fullGroups());
      if (task === undefined) return;
      const ended = task.ended.finally(() => {
        this.#groups.delete(ended);
        this.#onRoom();
      });
      this.#groups.set(ended, task.group);
    }
  }

  /** Resolves when all running tasks have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#groups.keys());
  }

  #fullGroups(): number[] {
    const counts = new Map<number, number>();
    for (const group of this.#groups.values()) counts.set(group, (counts.get(group) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= this.#limits.perGroup).map(([group]) => group);
  }
}
