/**
 * From where administrators have signed in. The audit log has it, so that it outlives restarts and all processes that serve
 * a vault know the same.
 */

import { LRUCache } from 'lru-cache';
import { listAuditEvents } from '../../db/audit/audit-search.ts';
import type { Reader } from '../../db/database.ts';
import { neighborhood } from '../../net/ip-network.ts';

/** Sign-ins that are looked at after a start; only right passwords count, so strangers add none. */
const mostRead = 1000;

export class KnownPlaces {
  readonly #places = new LRUCache<string, true>({ max: mostRead });
  #readTo = 0;

  /** Whether the person of this name has signed in from the network of this address before. */
  async has(reader: Reader, name: string, address: string | undefined): Promise<boolean> {
    const page = { after: this.#readTo, limit: mostRead };
    const signIns = await listAuditEvents(reader, { action: 'session.create' }, page);
    for (const { id, actor, ip } of signIns.toReversed()) {
      this.#readTo = Math.max(this.#readTo, id);
      if (ip !== null) this.#places.set(placeOf(actor, ip), true);
    }
    return address !== undefined && this.#places.get(placeOf(`admin:${name}`, address)) === true;
  }
}

/** Names differ in more than case. */
function placeOf(actor: string, address: string): string {
  return `${actor.toLowerCase()} ${neighborhood(address)}`;
}
