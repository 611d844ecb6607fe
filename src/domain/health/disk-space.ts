/** How much room the data directory has left, and what that means: a warning long before anything stops. */
import { statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { second } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';

/** `low` is told to people; `critical` stops what can wait, which is recording refusals. */
export type SpaceState = 'ok' | 'low' | 'critical';

/** Space is low below the setting, and critical below a quarter of it. */
const criticalShare = 4;

/** How long a look is remembered. A refusal takes a few hundred bytes, so that not much happens meanwhile. */
const rememberedFor = 5 * second;

/** What this much free space means where it is low below `lowBelow` bytes; nothing where that is 0. */
export function spaceState(free: number, lowBelow: number): SpaceState {
  if (free >= lowBelow) return 'ok';
  return free >= lowBelow / criticalShare ? 'low' : 'critical';
}

export class DiskSpace {
  readonly #directory: string;
  readonly #world: World;
  #seen: { readonly at: number; readonly free: number } | undefined;
  /** Bytes; 0 for no look at all. */
  readonly lowBelow: number;

  /** The file system on which `file` is. */
  constructor(file: string, world: World, lowBelow: number) {
    this.#directory = dirname(file);
    this.#world = world;
    this.lowBelow = lowBelow;
  }

  /** Bytes that are left, as of the last seconds. Throws what the system says. */
  free(): number {
    const now = this.#world.now();
    const age = this.#seen === undefined ? rememberedFor : now - this.#seen.at;
    if (this.#seen === undefined || age >= rememberedFor || age < 0) {
      const { bavail, bsize } = statfsSync(this.#directory);
      this.#seen = { at: now, free: bavail * bsize };
    }
    return this.#seen.free;
  }

  /** If the system does not report free space, assume there is enough: the next write tells. */
  state(): SpaceState {
    if (this.lowBelow === 0) return 'ok';
    try {
      return spaceState(this.free(), this.lowBelow);
    } catch {
      // The directory is gone or its file system does not answer, which every other check tells of.
      return 'ok';
    }
  }
}
