/**
 * Requests that wait for the next version of a certificate. One look per second serves all of them, in each process:
 * it finds new versions of any node, wakes the requests of these first, and lets the others check their rights again
 * after each change in the vault.
 */
import { second } from '../../base/duration.ts';
import { currentVersions } from '../../db/tables/certificates/certificate-versions.ts';
import type { Freshness } from '../cache/freshness.ts';
import type { DatabaseContext, LogContext, WorldContext } from '../contexts.ts';

/**
 * Why a wait ended: the caller may have news (`look`), its time is over, or the server stops. After `look` it can wait
 * again for the rest of its time.
 */
export type WaitEnd = 'look' | 'over' | 'stopping';

export type VersionWait = {
  readonly name: string;
  /** The version that the client has. */
  readonly version: number;
  /** The caller, as in the audit log. */
  readonly holder: string;
  /** By `World.elapsed`. */
  readonly until: number;
  /** The generation of the database in which the caller had its rights and the certificate this version. */
  readonly generation: number;
  /** Called once, unless the wait is released. */
  readonly end: (why: WaitEnd) => void;
};

/** Per process. Over HTTP each costs about 10.5 kB, most of it the connection and parser of node:http. */
const maxWaits = 10_000;

/** The share of the places that one caller can take, so that others can wait as well. */
const holderShare = 0.5;

/** Names in one query. */
const namesAtOnce = 500;

/** Waits that end in one turn of the event loop. */
const endedPerTurn = 50;

/** Waits that check their rights again per look: all of them within ten seconds, without a burst of queries. */
const checkedPerLook = 1000;

type WaitContext = DatabaseContext & LogContext & WorldContext & { readonly freshness: Freshness };

export class VersionWaits {
  readonly #vault: WaitContext;
  readonly #most: number;
  /** Longest unchecked first. */
  readonly #waits = new Set<VersionWait>();
  readonly #held = new Map<string, number>();
  #idle: AbortController | undefined;
  #isStopping = false;

  /** At most `most` requests wait at a time, and never more than 10,000. */
  constructor(vault: WaitContext, most = maxWaits) {
    this.#vault = vault;
    this.#most = Math.min(most, maxWaits);
  }

  /** The number of waits. */
  get size(): number {
    return this.#waits.size;
  }

  /** Begins a wait; false if there are too many in all or of this caller, or the server stops. */
  begin(wait: VersionWait): boolean {
    if (this.#isStopping || this.#waits.size >= this.#most) return false;
    const held = this.#held.get(wait.holder) ?? 0;
    if (held >= Math.ceil(this.#most * holderShare)) return false;
    this.#held.set(wait.holder, held + 1);
    this.#waits.add(wait);
    if (this.#idle === undefined) {
      const idle = new AbortController();
      this.#idle = idle;
      void this.#watch(idle.signal);
    }
    return true;
  }

  /** Ends a wait whose client has disconnected. */
  release(wait: VersionWait): void {
    this.#remove(wait);
    this.#restIfIdle();
  }

  /** Ends all waits, and lets no other begin. */
  stop(): void {
    this.#isStopping = true;
    for (const wait of this.#waits) this.#end(wait, 'stopping');
    this.#restIfIdle();
  }

  #end(wait: VersionWait, why: WaitEnd): void {
    if (this.#remove(wait)) wait.end(why);
  }

  #remove(wait: VersionWait): boolean {
    if (!this.#waits.delete(wait)) return false;
    const held = this.#held.get(wait.holder) ?? 0;
    if (held > 1) this.#held.set(wait.holder, held - 1);
    else this.#held.delete(wait.holder);
    return true;
  }

  #restIfIdle(): void {
    if (this.#waits.size > 0) return;
    this.#idle?.abort();
    this.#idle = undefined;
  }

  async #watch(idle: AbortSignal): Promise<void> {
    const { world, log } = this.#vault;
    for (;;) {
      await world.sleep(second, idle);
      if (idle.aborted) return;
      try {
        await this.#look();
      } catch (error) {
        log.warn({ err: error }, 'failed to look for new versions; requests keep waiting');
      }
      // Woken requests may have begun to wait again.
      if (!idle.aborted) this.#restIfIdle();
    }
  }

  async #look(): Promise<void> {
    const { world, freshness } = this.#vault;
    const now = world.elapsed();
    await this.#endAll(
      [...this.#waits].filter(({ until }) => until <= now),
      'over',
    );
    await freshness.look();
    const { generation } = freshness;
    const unchecked = [...this.#waits].filter((wait) => wait.generation !== generation);
    const versions = await this.#currentVersions(unchecked);
    const outdated = unchecked.filter(({ name, version }) => versions.get(name) !== version);
    await this.#endAll(outdated, 'look');
    await this.#endAll(unchecked.filter((wait) => this.#waits.has(wait)).slice(0, checkedPerLook), 'look');
  }

  async #endAll(waits: readonly VersionWait[], why: WaitEnd): Promise<void> {
    for (const [index, wait] of waits.entries()) {
      if (index > 0 && index % endedPerTurn === 0) await this.#vault.world.turn();
      this.#end(wait, why);
    }
  }

  /** The numbers of the current versions of these certificates, by name. */
  async #currentVersions(waits: readonly VersionWait[]): Promise<ReadonlyMap<string, number | null>> {
    const { db, world } = this.#vault;
    const names = [...new Set(waits.map(({ name }) => name))];
    const versions = new Map<string, number | null>();
    for (let at = 0; at < names.length; at += namesAtOnce) {
      const rows = await currentVersions(db.reader, names.slice(at, at + namesAtOnce));
      for (const { name, current_version: version } of rows) versions.set(name, version);
      await world.turn();
    }
    return versions;
  }
}
