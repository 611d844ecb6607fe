/**
 * Limits how many renewals a process runs at the same time, per issuer and DNS provider: one that does not respond
 * occupies only its own slots.
 */
import type { RenewalLane as Lane } from '../domain/renewals/renewal-claim.ts';

/** The limits. There is one in all because each renewal may hold connections and generate a key. */
export const slots = {
  inAll: 40,
  /** Reserved for issuers that answer immediately, such as the private CA. */
  forInstant: 4,
  perIssuer: 10,
  /** For one issuer with one DNS provider (or none), which leaves slots for the issuer's other providers. */
  perLane: 6,
  /** For one DNS provider, over all issuers. */
  perProvider: 10,
  /** Beside all these, for renewals that wait for people to create records, which takes up to a day. */
  byHand: 20,
} as const;

/**
 * Whether a renewal of this lane may start beside the running ones. What waits for people has slots of its own. ACME
 * issuers with running renewals or with `waiting` lanes * share the slots evenly if there are too few.
 */
export function admits(allRunning: readonly Lane[], lane: Lane, allWaiting: readonly Lane[]): boolean {
  const [running, waiting] = [allRunning, allWaiting].map((lanes) =>
    lanes.filter(({ is_by_hand }) => is_by_hand === lane.is_by_hand),
  ) as [Lane[], Lane[]];
  if (lane.is_by_hand === 1) {
    const ofProvider = running.filter(({ dns_lane }) => dns_lane === lane.dns_lane).length;
    return running.length < slots.byHand && ofProvider < slots.perProvider;
  }
  if (running.length >= slots.inAll) return false;
  const ofIssuer = running.filter(({ issuer_id }) => issuer_id === lane.issuer_id);
  if (lane.is_acme === 0) return ofIssuer.length < slots.perIssuer;
  const acme = running.filter(({ is_acme }) => is_acme === 1);
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

/** Running tasks, each with its lane. */
export class RenewalSlots {
  readonly #lanes = new Map<Promise<void>, Lane>();
  readonly #onRoom: () => void;

  /** `onRoom` is called whenever a task has ended and its slot is free. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  /** Whether there is room for a renewal of this lane; see `admits`. */
  admits(lane: Lane, waiting: readonly Lane[]): boolean {
    return admits([...this.#lanes.values()], lane, waiting);
  }

  /** Occupies a slot until the task, which must not reject, has ended. */
  hold(lane: Lane, task: Promise<void>): void {
    const ended = task.finally(() => {
      this.#lanes.delete(ended);
      this.#onRoom();
    });
    this.#lanes.set(ended, lane);
  }

  /** Resolves when all running tasks have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.#lanes.keys());
  }
}
