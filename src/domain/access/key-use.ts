/**
 * Records when and from where each API key and ACME client was last used, in the background and at most once a minute
 * each.
 */
import { minute } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import type { Database, Writer } from '../../db/database.ts';
import { setLastUsed } from '../../db/tables/access/api-key-uses.ts';
import { setAcmeClientsUsed } from '../../db/tables/acme-server/acme-clients.ts';

type Use = { readonly id: number; readonly at: number; readonly ip: string | null };

export class KeyUse {
  readonly #keys: Uses;
  readonly #acmeClients: Uses;

  constructor(db: Database, world: World) {
    this.#keys = new Uses(db, world, setLastUsed);
    this.#acmeClients = new Uses(db, world, setAcmeClientsUsed);
  }

  /** Notes a use of the key, unless one was noted within the last minute. */
  note(id: number, ip: string | undefined): void {
    this.#keys.note(id, ip);
  }

  /** Notes a request of the ACME client in the same way. */
  noteAcmeClient(id: number, ip: string | undefined): void {
    this.#acmeClients.note(id, ip);
  }

  /** Writes the uses noted since the last call. After an error they stay noted for the next call. */
  async write(): Promise<void> {
    await this.#keys.write();
    await this.#acmeClients.write();
  }
}

/** The uses of one table. */
class Uses {
  readonly #db: Database;
  readonly #world: World;
  readonly #store: (writer: Writer, uses: readonly Use[]) => Promise<void>;
  readonly #noted = new Map<number, number>();
  #unwritten = new Map<number, Use>();

  constructor(db: Database, world: World, store: (writer: Writer, uses: readonly Use[]) => Promise<void>) {
    this.#db = db;
    this.#world = world;
    this.#store = store;
  }

  note(id: number, ip: string | undefined): void {
    const now = this.#world.now();
    const last = this.#noted.get(id);
    if (last !== undefined && Math.abs(now - last) < minute) return;
    this.#noted.set(id, now);
    this.#unwritten.set(id, { id, at: now, ip: ip ?? null });
  }

  async write(): Promise<void> {
    if (this.#unwritten.size === 0) return;
    const uses = this.#unwritten;
    this.#unwritten = new Map();
    try {
      await this.#db.write((writer) => this.#store(writer, [...uses.values()]));
    } catch (error) {
      this.#unwritten = new Map([...uses, ...this.#unwritten]);
      throw error;
    }
  }
}
