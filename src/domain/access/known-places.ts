/** From which networks administrators have signed in before. */
import { listEventsOfAction } from '../../db/audit/audit-events.ts';
import type { Reader } from '../../db/database.ts';
import { neighborhood } from '../../net/ip-network.ts';
import { boundedCache } from '../cache/bounded-cache.ts';

/** Sign-ins read after a start. Only successful ones are recorded as such, so attackers cannot add any. */
const maxRead = 1000;

/**
 * The networks from which administrators have signed in before. They come from the audit log, so that they survive
 * restarts and are the same in all processes.
 */
export class KnownPlaces {
  readonly #places = boundedCache<string, true>(maxRead);
  #readTo = 0;

  /** Whether this administrator has signed in from the network of this address before. */
  async has(reader: Reader, name: string, address: string | undefined): Promise<boolean> {
    const signIns = await listEventsOfAction(reader, 'session.create', this.#readTo, maxRead);
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
