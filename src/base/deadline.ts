/** Deadlines: one signal that is aborted by the caller's signal or when the time is up. */
import { minute } from './duration.ts';
import type { World } from './world.ts';

export type Deadline = {
  /** Aborted by the caller's signal or by the clock. */
  readonly signal: AbortSignal;
  /** What aborted the signal; undefined if nothing has. */
  readonly ended: () => 'timeout' | 'aborted' | undefined;
  /** Extends a deadline that has not passed by this many milliseconds; a negative number shortens it. */
  readonly extend: (ms: number) => void;
};

/** Runs `work` with a deadline of `ms` milliseconds and returns its result. `work` must observe the signal. */
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
  let left = ms;
  const run = async () => {
    do {
      const wait = left;
      left = 0;
      await world.sleep(wait, timer.signal);
    } while (left > 0 && !timer.signal.aborted);
    if (!timer.signal.aborted) end('timeout');
  };
  const timedOut = run();
  const extend = (more: number) => {
    left += more;
  };
  try {
    return await work({ signal: over.signal, ended: () => how, extend });
  } finally {
    signal.removeEventListener('abort', stop);
    timer.abort();
    await timedOut;
  }
}

/**
 * Runs `work` while a deadline is paused: `extend` postpones it minute by minute for as long as the work takes. For
 * work whose parts all have their own time limits.
 */
export async function withPausedDeadline<T>(
  { elapsed, sleep }: Pick<World, 'elapsed' | 'sleep'>,
  extend: ((ms: number) => void) | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (extend === undefined) return work();
  const done = new AbortController();
  const hold = async () => {
    while (!done.signal.aborted) {
      const from = elapsed();
      extend(minute);
      await sleep(minute, done.signal);
      if (done.signal.aborted) extend(elapsed() - from - minute);
    }
  };
  const holding = hold();
  try {
    return await work();
  } finally {
    done.abort();
    await holding;
  }
}
