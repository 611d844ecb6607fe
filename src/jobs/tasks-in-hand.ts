/** What a job has begun and not ended yet: so much at once in all, and so much of each group, so that none holds up the others. */

export type TaskLimits = { readonly perGroup: number; readonly inAll: number };

/** A task under way, which must not fail. */
export type Task = { readonly group: number; readonly ended: Promise<void> };

export class TasksInHand {
  readonly #limits: TaskLimits;
  readonly #onRoom: () => void;
  readonly #groups = new Map<Promise<void>, number>();

  /** `onRoom` is called whenever a task has ended and is in hand no more. */
  constructor(limits: TaskLimits, onRoom: () => void) {
    this.#limits = limits;
    this.#onRoom = onRoom;
  }

  /** Takes what `begin` begins while there is room and it finds any. It gets the groups that have as much as they may. */
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

  /** Resolves when all that is in hand has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#groups.keys());
  }

  #fullGroups(): number[] {
    const counts = new Map<number, number>();
    for (const group of this.#groups.values()) counts.set(group, (counts.get(group) ?? 0) + 1);
    return [...counts].filter(([, count]) => count >= this.#limits.perGroup).map(([group]) => group);
  }
}
