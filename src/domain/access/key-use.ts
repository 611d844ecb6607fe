/**
 * Writes in the background, in one transaction, what no request waits for: when and from where each API key and ACME
 * client was last used, at most once a minute each, and reports of deployments and checks of endpoints without news.
 */
import { minute } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import type { Database, Writer } from '../../db/database.ts';
import { setLastUsed } from '../../db/tables/access/api-key-uses.ts';
import { setAcmeClientsUsed } from '../../db/tables/acme-server/acme-clients.ts';
import { type Sighting, setSightings } from '../../db/tables/deployments.ts';
import { type Look, setLooks } from '../../db/tables/endpoints.ts';

type Use = { readonly id: number; readonly at: number; readonly ip: string | null };

export class KeyUse {
  readonly #db: Database;
  readonly #keys: Uses;
  readonly #acmeClients: Uses;
  readonly #deployments = new Unwritten(setSightings);
  readonly #endpoints = new Unwritten(setLooks);

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#keys = new Uses(world, setLastUsed);
    this.#acmeClients = new Uses(world, setAcmeClientsUsed);
  }

  /** Notes a use of the key, unless one was noted within the last minute. */
  note(id: number, ip: string | undefined): void {
    this.#keys.note(id, ip);
  }

  /** Notes a request of the ACME client in the same way. */
  noteAcmeClient(id: number, ip: string | undefined): void {
    this.#acmeClients.note(id, ip);
  }

  /** Notes a report of a deployment; it replaces one that is not written yet. */
  noteDeployment(sighting: Sighting): void {
    this.#deployments.put(sighting);
  }

  /** Forgets the noted report of the deployment with this id, because a newer one was written. */
  forgetDeployment(id: number): void {
    this.#deployments.drop(id);
  }

  /** Notes a check of an endpoint; it replaces one that is not written yet. */
  noteEndpoint(look: Look): void {
    this.#endpoints.put(look);
  }

  /** Forgets the noted check of the endpoint with this id, because it was changed or a newer check was written. */
  forgetEndpoint(id: number): void {
    this.#endpoints.drop(id);
  }

  /** Writes what was noted since the last call. After an error it stays noted for the next call. */
  async write(): Promise<void> {
    const parts = [this.#keys.unwritten, this.#acmeClients.unwritten, this.#deployments, this.#endpoints];
    const stores = parts.flatMap((part) => part.take() ?? []);
    if (stores.length === 0) return;
    try {
      await this.#db.write(async (writer) => {
        for (const { store } of stores) await store(writer);
      });
    } catch (error) {
      for (const { putBack } of stores) putBack();
      throw error;
    }
  }
}

/** How to store what was taken, and how to note it again. */
type Taken = { readonly store: (writer: Writer) => Promise<void>; readonly putBack: () => void };

/** The rows of one table that are not written yet. */
class Unwritten<Row extends { readonly id: number }> {
  readonly #store: (writer: Writer, rows: readonly Row[]) => Promise<void>;
  #rows = new Map<number, Row>();

  constructor(store: (writer: Writer, rows: readonly Row[]) => Promise<void>) {
    this.#store = store;
  }

  put(row: Row): void {
    this.#rows.set(row.id, row);
  }

  drop(id: number): void {
    this.#rows.delete(id);
  }

  /** Takes all rows; undefined if there are none. */
  take(): Taken | undefined {
    if (this.#rows.size === 0) return undefined;
    const rows = this.#rows;
    this.#rows = new Map();
    return {
      store: (writer) => this.#store(writer, [...rows.values()]),
      putBack: () => {
        this.#rows = new Map([...rows, ...this.#rows]);
      },
    };
  }
}

/** The uses of one table. */
class Uses {
  readonly unwritten: Unwritten<Use>;
  readonly #world: World;
  readonly #noted = new Map<number, number>();

  constructor(world: World, store: (writer: Writer, uses: readonly Use[]) => Promise<void>) {
    this.#world = world;
    this.unwritten = new Unwritten(store);
  }

  note(id: number, ip: string | undefined): void {
    const now = this.#world.now();
    const last = this.#noted.get(id);
    if (last !== undefined && Math.abs(now - last) < minute) return;
    this.#noted.set(id, now);
    this.unwritten.put({ id, at: now, ip: ip ?? null });
  }
}
