/**
 * The networks from which administrators have signed in before. They come from the audit log, so that they survive restarts
 * and are the same in all processes.
 */

import { LRUCache } from 'lru-cache';
import { listEventsOfAction } from '../../db/audit/audit-events.ts';
import type { Reader } from '../../db/database.ts';
import { neighborhood } from '../../net/ip-network.ts';

/** Sign-ins read after a start. Only successful ones are recorded as such, so attackers cannot add any. */
const mostRead = 1000;

export class KnownPlaces {
  readonly #places = new LRUCache<string, true>({ max: mostRead });
  #readTo = 0;

  /** Whether this administrator has signed in from the network of this address before. */
  async has(reader: Reader, name: string, address: string | undefined): Promise<boolean> {
    const signIns = await listEventsOfAction(reader, 'session.create', this.#readTo, mostRead);
    for (const { id, actor, ip } of signIns.toReversed()) {
      this.#readTo = Math.max(this.#readTo, id);
      if (ip !== null) this.#places.set(placeOf(actor, ip), true);
    }
    return address !== undefined && this.#places.get(placeOf(`admin:${name}`, address)) === true;
  }
}

/** Names are compared without case. */
function placeOf(actor: string, address: string): string {
  return `${actor.toLowerCase()} ${neighborhood(address)}`;
}
