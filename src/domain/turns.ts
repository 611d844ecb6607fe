/** Taking turns: work under the same key runs one after the other, in the order in which it came. */

export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Runs `work` when everything that came before under this key has ended, however it ended. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    this.#last.set(key, mine);
    try {
      return await mine;
    } finally {
      if (this.#last.get(key) === mine) this.#last.delete(key);
    }
  }
}
