/**
 * The order in which passwords are hashed: a few at a time, known callers first, and the others fairly by network, so
 * that strangers cannot keep administrators from signing in.
 */

import { Problem } from '../../base/problem.ts';
import { wideNetwork } from '../../net/ip-network.ts';

const atOnce = 2;

/** For known callers and strangers each. */
const maxWaiting = 16;

/** Known: a session, a setup link, or an administrator at an address from which they have signed in before. */
export type Origin = 'known' | { readonly address: string | undefined };

type Waiting = {
  readonly network: string;
  readonly begin: () => void;
  readonly refuse: (why: Problem) => void;
};

export class PasswordQueue {
  readonly #known: Waiting[] = [];
  readonly #strangers: Waiting[] = [];
  #running = 0;

  /** Runs `work` in its turn. Throws `rate_limited` if too many are waiting. */
  async run<T>(origin: Origin, work: () => Promise<T>): Promise<T> {
    if (this.#running < atOnce) this.#running += 1;
    else await this.#wait(origin);
    try {
      return await work();
    } finally {
      // The next waiter takes over the slot, so that a new caller cannot get ahead of it.
      const next = this.#known.shift() ?? this.#strangers.shift();
      if (next === undefined) this.#running -= 1;
      else next.begin();
    }
  }

  async #wait(origin: Origin): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const network = origin === 'known' ? '' : wideNetwork(origin.address ?? 'unknown');
    const line = origin === 'known' ? this.#known : this.#strangers;
    if (line.length >= maxWaiting && (origin === 'known' || !this.#makeRoom(network))) throw tooMany();
    line.push({ network, begin: resolve, refuse: reject });
    await promise;
  }

  /** Rejects the last caller of the network with the most waiting, unless this one has about as many. */
  #makeRoom(network: string): boolean {
    const counts = new Map<string, number>();
    for (const { network: one } of this.#strangers) counts.set(one, (counts.get(one) ?? 0) + 1);
    const most = Math.max(...counts.values());
    if ((counts.get(network) ?? 0) + 1 >= most) return false;
    const last = this.#strangers.findLastIndex(({ network: one }) => counts.get(one) === most);
    this.#strangers.splice(last, 1)[0]?.refuse(tooMany());
    return true;
  }
}

function tooMany(): Problem {
  return new Problem('rate_limited', {
    detail: 'Too many people are signing in right now.',
    retryAfter: 5,
  });
}
