/** Records when and from where each API key was last used, in the background and at most once a minute per key. */
import { minute } from '../../base/duration.ts';
import type { World } from '../../base/world.ts';
import type { Database } from '../../db/database.ts';
import { type ApiKeyUse, setLastUsed } from '../../db/tables/api-keys.ts';

export class KeyUse {
  readonly #db: Database;
  readonly #world: World;
  readonly #noted = new Map<number, number>();
  #unwritten = new Map<number, ApiKeyUse>();

  constructor(db: Database, world: World) {
    this.#db = db;
    this.#world = world;
  }

  /** Notes a use of the key, unless one was noted within the last minute. */
  note(id: number, ip: string | undefined): void {
    const now = this.#world.now();
    const last = this.#noted.get(id);
    if (last !== undefined && Math.abs(now - last) < minute) return;
    this.#noted.set(id, now);
    this.#unwritten.set(id, { id, at: now, ip: ip ?? null });
  }

  /** Writes the uses noted since the last call. After an error they stay noted for the next call. */
  async write(): Promise<void> {
    if (this.#unwritten.size === 0) return;
    const uses = this.#unwritten;
    this.#unwritten = new Map();
    try {
      await this.#db.write((writer) => setLastUsed(writer, [...uses.values()]));
    } catch (error) {
      this.#unwritten = new Map([...uses, ...this.#unwritten]);
      throw error;
    }
  }
}
