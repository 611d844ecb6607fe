/**
 * Who owns a lease, and whether that process has died. The name of an owner contains a lock that its process holds
 * until it ends, so its leases can be ended before they expire. Only for a database on one machine: elsewhere, leases
 * expire.
 */
import type { World } from '../../base/world.ts';
import { ProcessLocks } from '../../db/process-locks.ts';
import { endLeases, listLeaseOwners } from '../../db/tables/nodes/leases.ts';
import type { TimedContext } from '../contexts.ts';

/** Names the owners of leases. */
export type OwnersContext = { readonly owners: LeaseOwners };

type NamedLock = ReturnType<ProcessLocks['take']> & { readonly name: string };

/** The locks of the processes that use a data directory, with that of this process. */
export class LeaseOwners {
  readonly #locks: ProcessLocks;
  readonly #world: World;
  #own: NamedLock | undefined;

  constructor(directory: string, world: World) {
    this.#locks = new ProcessLocks(directory);
    this.#world = world;
  }

  /**
   * Takes the lock of this process, which a server holds from its start: commands see by it that the database is open.
   * Does nothing if the disk refuses it.
   */
  hold(): void {
    this.#own ??= this.#take();
  }

  /**
   * `worker` with the lock of this process. Without it if the lock cannot be taken, for example because the disk is
   * full.
   */
  named(worker: string): string {
    this.hold();
    return this.#own === undefined ? worker : `${worker}@${this.#own.name}`;
  }

  /** The locks that no process holds: those of dead processes, and one that a process is about to take. */
  abandoned(): string[] {
    return this.#locks.abandoned();
  }

  /** Removes abandoned locks that own no leases any more. */
  forget(locks: readonly string[]): void {
    this.#locks.remove(locks);
  }

  /** The lock of this process; undefined if it holds none. */
  get own(): string | undefined {
    return this.#own?.name;
  }

  /** The locks that processes hold, this one included. */
  held(): string[] {
    return this.#locks.held();
  }

  /** Releases the lock of this process. */
  release(): void {
    this.#own?.release();
    this.#own = undefined;
  }

  #take(): NamedLock | undefined {
    const name = this.#world.randomBytes(8).toString('hex');
    try {
      return { ...this.#locks.take(name), name };
    } catch {
      // Not worth a failed renewal: without a lock, its lease expires after a minute.
      return undefined;
    }
  }
}

/**
 * Ends the leases of processes that have died, so that their renewals and notifications are resumed at once. Returns
 * their number.
 */
export async function endDeadLeases({ db, world, owners }: TimedContext & OwnersContext): Promise<number> {
  const before = owners.abandoned();
  if (before.length === 0) return 0;
  const now = world.now();
  const listed = await listLeaseOwners(db.reader, now);
  // A file can look abandoned in the moment before its process locks it, but then it owns no lease yet. So an owner
  // that was listed before its lock is found abandoned is dead, and a lock abandoned before the list owns nothing else.
  const locks = owners.abandoned().filter((lock) => before.includes(lock));
  const dead = listed.filter((owner) => isOneOf(locks, owner));
  if (dead.length > 0) await db.write((writer) => endLeases(writer, dead, now));
  owners.forget(locks);
  return dead.length;
}

/** Whether the name of an owner contains one of the locks; names of version 0.1.0 contain none. */
function isOneOf(locks: readonly string[], owner: string): boolean {
  const lock = /@([0-9a-f]{16})\//.exec(owner)?.[1];
  return lock !== undefined && locks.includes(lock);
}
