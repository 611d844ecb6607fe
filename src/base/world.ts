/**
 * The world as an argument: clock, timers and randomness enter the vault only here, so that tests can set the time and
 * observe waits.
 */
import { randomBytes } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

export type World = {
  /**
   * UTC milliseconds since 1970. Someone may set the clock at any time: never measure with it how long something takes.
   */
  readonly now: () => number;
  /** Whole milliseconds by a clock that is never set, from any moment on: only differences have a meaning. */
  readonly elapsed: () => number;
  /** True where a test sets the clock, which no other may correct. */
  readonly isSet?: boolean;
  /** Resolves after `ms` milliseconds, or as soon as `signal` is aborted; it never rejects. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /**
   * Resolves after the event loop has handled the input that is waiting now, so that input that arrived together can be
   * processed together.
   */
  readonly turn: () => Promise<void>;
  /** `size` bytes from the operating system's generator. */
  readonly randomBytes: (size: number) => Buffer;
};

export const realWorld: World = {
  now: () => Date.now(),
  elapsed: () => Math.floor(performance.now()),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal && { signal }).catch(() => {
      // The only rejection is the abort, which resolves the wait as documented.
    });
  },
  turn: async () => {
    await nextTurn();
  },
  randomBytes: (size) => randomBytes(size),
};
