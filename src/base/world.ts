/**
 * The world as an argument: clock, waiting and randomness enter the vault here and nowhere else, so that tests can
 * set the time and watch what is waited for.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';

export type World = {
  /** UTC milliseconds since 1970. */
  readonly now: () => number;
  /** Resolves after `ms` milliseconds, or as soon as `signal` is aborted; it never rejects. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** Resolves when the event loop has handled the input that is waiting now: what arrived together can go together. */
  readonly turn: () => Promise<void>;
  /** `size` bytes from the operating system's generator. */
  readonly randomBytes: (size: number) => Buffer;
};

export const realWorld: World = {
  now: () => Date.now(),
  sleep: async (ms, signal) => {
    await delay(ms, undefined, signal && { signal }).catch(() => {
      // The only rejection is the abort, which ends the wait as promised.
    });
  },
  turn: async () => {
    await nextTurn();
  },
  randomBytes: (size) => randomBytes(size),
};
