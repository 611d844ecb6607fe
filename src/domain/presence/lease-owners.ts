/**
 * Who owns a lease, and whether that process has died. The name of an owner contains a lock that its process holds until it
 * ends, so its leases can be ended before they expire. Only for a database on one machine: elsewhere, leases expire.
 */
import type { World } from '../../base/world.ts';
import {
  isAbandoned,
  type ProcessLock,
  removeAbandoned,
  removeOldLocks,
  takeProcessLock,
} from '../../db/sqlite/process-lock.ts';
import { endLeases, listLeaseOwners } from '../../db/tables/leases.ts';
import type { TimedContext } from '../contexts.ts';

/** Names the owners of leases. */
export type OwnersContext = { readonly owners: LeaseOwners };

export class LeaseOwners {
  readonly #directory: string;
  readonly #world: World;
  #own: (ProcessLock & { readonly name: string }) | undefined;

  constructor(directory: string, world: World) {
    this.#directory = directory;
    this.#world = world;
  }

  /** `worker` with the lock of this process. Without it if the lock cannot be taken, for example because the disk is full. */
  named(worker: string): string {
    this.#own ??= this.#take();
    return this.#own === undefined ? worker : `${worker}@${this.#own.name}`;
  }

  /** Of these owners, those whose processes have ended for certain. Owners without a lock may be alive. */
  dead(owners: readonly string[]): string[] {
    const abandoned = new Map<string, boolean>();
    return owners.filter((owner) => {
      const lock = lockOf(owner);
      if (lock === undefined || lock === this.#own?.name) return false;
      const known = abandoned.get(lock) ?? isAbandoned(this.#directory, lock);
      abandoned.set(lock, known);
      return known;
    });
  }

  /** Removes the locks of dead owners that have no leases any more. */
  forget(dead: readonly string[]): void {
    for (const owner of dead) {
      const lock = lockOf(owner);
      if (lock !== undefined) removeAbandoned(this.#directory, lock);
    }
  }

  /** Releases the lock of this process. */
  release(): void {
    this.#own?.release();
    this.#own = undefined;
  }

  #take(): (ProcessLock & { readonly name: string }) | undefined {
    const name = this.#world.randomBytes(8).toString('hex');
    try {
      const lock = takeProcessLock(this.#directory, name);
      removeOldLocks(this.#directory, this.#world.now());
      return { ...lock, name };
    } catch {
      // Not worth a failed renewal: its lease expires after a minute, as it does after a power failure.
      return undefined;
    }
  }
}

/**
 * Ends the leases of processes that have died, so that their renewals and notifications are resumed at once. Returns their
 * number.
 */
export async function endDeadLeases({ db, world, owners }: TimedContext & OwnersContext): Promise<number> {
  const now = world.now();
  if (owners.dead(await listLeaseOwners(db.reader, now)).length === 0) return 0;
  const dead = await db.write(async (writer) => {
    // Listed again, because an owner may have claimed more before it died.
    const found = owners.dead(await listLeaseOwners(writer, now));
    if (found.length > 0) await endLeases(writer, found, now);
    return found;
  });
  owners.forget(dead);
  return dead.length;
}

/** The lock in the name of an owner; undefined in names of version 0.1.0. */
function lockOf(owner: string): string | undefined {
  return /@([0-9a-f]{16})(?:\/|$)/.exec(owner)?.[1];
}
