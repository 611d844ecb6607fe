/** Time limits for what talks to others: one signal that ends with the caller's, or when the time is over. */
import type { World } from './world.ts';

export type Deadline = {
  /** Aborted by the caller's signal or by the clock. */
  readonly signal: AbortSignal;
  /** Which of the two it was, or neither so far. */
  readonly ended: () => 'timeout' | 'aborted' | undefined;
};

/** Runs `work` with a deadline of `ms` milliseconds. Whatever `work` gives or throws comes out; it must heed the signal. */
export async function withDeadline<T>(
  world: Pick<World, 'sleep'>,
  ms: number,
  signal: AbortSignal,
  work: (deadline: Deadline) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const timer = new AbortController();
  let how: 'timeout' | 'aborted' | undefined;
  const end = (why: 'timeout' | 'aborted') => {
    how ??= why;
    over.abort();
  };
  const stop = () => end('aborted');
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  const timedOut = world.sleep(ms, timer.signal).then(() => {
    if (!timer.signal.aborted) end('timeout');
  });
  try {
    return await work({ signal: over.signal, ended: () => how });
  } finally {
    signal.removeEventListener('abort', stop);
    timer.abort();
    await timedOut;
  }
}
