/**
 * The renewals that a process carries out at the same time, and for which lanes there is room: an issuer or a DNS provider
 * that does not respond fills only its own slots.
 */
import type { RenewalLane as Lane } from '../domain/renewals/renewal-claim.ts';

/** In all, because each renewal may hold connections and a key that is being generated; and how many are for whom. */
export const slots = {
  inAll: 40,
  /** Kept free for issuers that answer at once, such as the private CA. */
  forInstant: 4,
  perIssuer: 10,
  /** Of one issuer through the same DNS provider, or through none, which leaves it slots for its other providers. */
  perLane: 6,
  /** Through the same DNS provider, for all issuers. */
  perProvider: 10,
  /** Beside all these, for renewals that wait for people to create records, which takes up to a day. */
  byHand: 20,
} as const;

/**
 * Whether a renewal of this lane may begin beside those under way. What waits for people has slots of its own. ACME issuers that have work, under way or among the
 * lanes that are `waiting`, share the slots evenly where there is not enough for all.
 */
export function admits(allUnderWay: readonly Lane[], lane: Lane, allWaiting: readonly Lane[]): boolean {
  const [underWay, waiting] = [allUnderWay, allWaiting].map((lanes) =>
    lanes.filter(({ is_by_hand }) => is_by_hand === lane.is_by_hand),
  ) as [Lane[], Lane[]];
  if (lane.is_by_hand === 1) {
    const ofProvider = underWay.filter(({ dns_lane }) => dns_lane === lane.dns_lane).length;
    return underWay.length < slots.byHand && ofProvider < slots.perProvider;
  }
  if (underWay.length >= slots.inAll) return false;
  const ofIssuer = underWay.filter(({ issuer_id }) => issuer_id === lane.issuer_id);
  if (lane.is_acme === 0) return ofIssuer.length < slots.perIssuer;
  const acme = underWay.filter(({ is_acme }) => is_acme === 1);
  const most = slots.inAll - slots.forInstant;
  const issuers = new Set(
    [...acme, ...waiting].filter(({ is_acme }) => is_acme === 1).map((one) => one.issuer_id),
  );
  const share = Math.max(1, Math.min(slots.perIssuer, Math.floor(most / Math.max(1, issuers.size))));
  if (acme.length >= most || ofIssuer.length >= share) return false;
  const ofLane = ofIssuer.filter(({ dns_lane }) => dns_lane === lane.dns_lane).length;
  if (ofLane >= Math.min(slots.perLane, Math.max(1, share - 1))) return false;
  if (lane.dns_lane === 0) return true;
  return acme.filter(({ dns_lane }) => dns_lane === lane.dns_lane).length < slots.perProvider;
}

/** Tasks under way, each with the lane that it counts in. */
export class RenewalSlots {
  readonly #lanes = new Map<Promise<void>, Lane>();
  readonly #onRoom: () => void;

  /** `onRoom` is called whenever a task has ended and no longer counts. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  /** Whether there is room for a renewal of this lane; see `admits`. */
  admits(lane: Lane, waiting: readonly Lane[]): boolean {
    return admits([...this.#lanes.values()], lane, waiting);
  }

  /** Counts a task, which must not fail, until it has ended. */
  hold(lane: Lane, task: Promise<void>): void {
    const ended = task.finally(() => {
      this.#lanes.delete(ended);
      this.#onRoom();
    });
    this.#lanes.set(ended, lane);
  }

  /** Resolves when everything under way has ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#lanes.keys());
  }
}
