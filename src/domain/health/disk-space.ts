/** The free space of the data directory and its state: a warning long before anything stops. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** `low` sends notifications; `critical` stops what can wait: recording refusals. */
export type SpaceState = 'ok' | 'low' | 'critical';

/** Space is low below the setting, and critical below a quarter of it. */
const criticalShare = 4;

/** How long a result is cached. A refusal takes a few hundred bytes, so little can happen meanwhile. */
const cachedFor = 5 * second;

/** The state for this many free bytes, which are low below `lowBelow`; always `ok` if that is 0. */
export function spaceState(free: number, lowBelow: number): SpaceState {
  if (free >= lowBelow) return 'ok';
  return free >= lowBelow / criticalShare ? 'low' : 'critical';
}

export class DiskSpace {
  readonly #directory: string;
  readonly #world: World;
  #found: { readonly at: number; readonly free: number | undefined } | undefined;
  #looking: Promise<number> | undefined;
  /** Bytes; 0 disables the check. */
  readonly lowBelow: number;

  /** The file system that contains `file`. */
  constructor(file: string, world: World, lowBelow: number) {
    this.#directory = dirname(file);
    this.#world = world;
    this.lowBelow = lowBelow;
  }

  /** Starts a check, so that `state` has a result. */
  async begin(): Promise<void> {
    if (this.lowBelow === 0) return;
    await this.free().catch(() => {
      // The directory is missing or its file system does not respond; every other check reports that.
    });
  }

  /** Free bytes, at most a few seconds old. Throws the system's error. */
  async free(): Promise<number> {
    const known = this.#isRecent() ? this.#found?.free : undefined;
    if (known !== undefined) return known;
    // One check at a time: a disk that does not respond blocks one thread.
    this.#looking ??= this.#look();
    return this.#looking;
  }

  /**
   * As of the last check, without waiting for a disk; starts a due check. If the system does not report free space,
   * assume there is enough: the next write will tell.
   */
  state(): SpaceState {
    if (this.lowBelow === 0) return 'ok';
    if (!this.#isRecent()) void this.begin();
    return this.#found?.free === undefined ? 'ok' : spaceState(this.#found.free, this.lowBelow);
  }

  #isRecent(): boolean {
    const age = this.#found === undefined ? cachedFor : this.#world.elapsed() - this.#found.at;
    return age < cachedFor;
  }

  async #look(): Promise<number> {
    let free: number | undefined;
    try {
      const { bavail, bsize } = await statfs(this.#directory);
      free = bavail * bsize;
      return free;
    } finally {
      this.#found = { at: this.#world.elapsed(), free };
      this.#looking = undefined;
    }
  }
}
