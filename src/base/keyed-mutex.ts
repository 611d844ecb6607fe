/** A mutex by key: work under the same key runs in order of arrival, one or a few at a time. */

/** The signal was aborted before the lock was acquired. */
export class TurnAborted extends Error {
  constructor() {
    super('waiting for the lock was aborted');
    this.name = 'TurnAborted';
  }
}

/** What waits begins in this order: what is urgent first. */
type Queue = { running: number; readonly urgent: Set<() => void>; readonly waiting: Set<() => void> };

export class KeyedMutex {
  readonly #queues = new Map<string, Queue>();

  /**
   * Runs `work` as soon as fewer than `atOnce` (default one) run under this key and all earlier work has started; what
   * is urgent goes before what waits and is not. Throws TurnAborted without starting if * `signal` is aborted first.
   */
  async take<T>(
    key: string,
    work: () => Promise<T>,
    {
      signal,
      atOnce = 1,
      isUrgent = false,
    }: { readonly signal?: AbortSignal; readonly atOnce?: number; readonly isUrgent?: boolean } = {},
  ): Promise<T> {
    const queue = this.#queues.get(key) ?? { running: 0, urgent: new Set(), waiting: new Set() };
    this.#queues.set(key, queue);
    const { urgent, waiting } = queue;
    if (queue.running < atOnce && urgent.size === 0 && waiting.size === 0) queue.running += 1;
    else await turnIn(isUrgent ? urgent : waiting, signal);
    try {
      return await work();
    } finally {
      const [next] = urgent.size > 0 ? urgent : waiting;
      // The next waiter takes over the slot, so that a new caller cannot get ahead of it.
      if (next !== undefined) next();
      else queue.running -= 1;
      if (queue.running === 0) this.#queues.delete(key);
    }
  }
}

async function turnIn(waiting: Set<() => void>, signal: AbortSignal | undefined): Promise<void> {
  if (signal?.aborted === true) throw new TurnAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const begin = () => {
    waiting.delete(begin);
    resolve();
  };
  const abort = () => {
    if (waiting.delete(begin)) reject(new TurnAborted());
  };
  waiting.add(begin);
  signal?.addEventListener('abort', abort, { once: true });
  await promise.finally(() => signal?.removeEventListener('abort', abort));
}
