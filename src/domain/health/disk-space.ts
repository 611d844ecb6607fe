/** How much room the data directory has left, and what that means: a warning long before anything stops. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** `low` is told to people; `critical` stops what can wait, which is recording refusals. */
export type SpaceState = 'ok' | 'low' | 'critical';

/** Space is low below the setting, and critical below a quarter of it. */
const criticalShare = 4;

/** How long a look is remembered. A refusal takes a few hundred bytes, so that not much happens meanwhile. */
const cachedFor = 5 * second;

/** What this much free space means where it is low below `lowBelow` bytes; nothing where that is 0. */
export function spaceState(free: number, lowBelow: number): SpaceState {
  if (free >= lowBelow) return 'ok';
  return free >= lowBelow / criticalShare ? 'low' : 'critical';
}

export class DiskSpace {
  readonly #directory: string;
  readonly #world: World;
  #found: { readonly at: number; readonly free: number | undefined } | undefined;
  #looking: Promise<number> | undefined;
  /** Bytes; 0 for no look at all. */
  readonly lowBelow: number;

  /** The file system on which `file` is. */
  constructor(file: string, world: World, lowBelow: number) {
    this.#directory = dirname(file);
    this.#world = world;
    this.lowBelow = lowBelow;
  }

  /** Looks for the first time, so that `state` knows. */
  async begin(): Promise<void> {
    if (this.lowBelow === 0) return;
    await this.free().catch(() => {
      // The directory is gone or its file system does not answer, which every other check tells of.
    });
  }

  /** Bytes that are left, as of the last seconds. Throws what the system says. */
  async free(): Promise<number> {
    const known = this.#isRecent() ? this.#found?.free : undefined;
    if (known !== undefined) return known;
    // One look at a time: a disk that does not answer takes a single thread.
    this.#looking ??= this.#look();
    return this.#looking;
  }

  /**
   * As of the last look, without waiting for a disk; a look that is due begins. If the system does not report free
   * space, assume there is enough: the next write tells.
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
