/**
 * Hashing passwords, a few at a time: each takes 64 MiB and a quarter of a second, so that callers who send many wait or
 * are refused, and never take the server down.
 */
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';
import {
  dummyPasswordHash,
  type HashCost,
  hashCost,
  hashPassword,
  needsRehash,
  passwordMatches,
} from '../../crypto/password-hash.ts';
import { passwordComplaint } from './password-policy.ts';
import { type Origin, PasswordQueue } from './password-queue.ts';

export class Passwords {
  readonly #world: World;
  readonly #cost: HashCost;
  readonly #nobodys: string;
  readonly #queue = new PasswordQueue();

  constructor(world: World, cost: HashCost = hashCost) {
    this.#world = world;
    this.#cost = cost;
    this.#nobodys = dummyPasswordHash(world, cost);
  }

  /**
   * The hash of a password that a person of this name chooses. Throws `invalid_request` where it is too short, too
   * common or the name itself, and `rate_limited`.
   */
  async choose(name: string, password: Secret<string>, path = 'password'): Promise<string> {
    const message = passwordComplaint(name, password.expose());
    if (message !== undefined) {
      throw new Problem('invalid_request', { detail: `${path}: ${message}.`, errors: [{ path, message }] });
    }
    return this.hash(password);
  }

  /** The hash at today's cost. Throws `rate_limited`. */
  hash(password: Secret<string>): Promise<string> {
    return this.#queue.run('known', () => hashPassword(this.#world, password, this.#cost));
  }

  /**
   * Whether the password is the one that was hashed; for nobody's hash (undefined) it takes as long to say no. Throws
   * `rate_limited` where too many wait already.
   */
  async matches(password: Secret<string>, hash: string | undefined, origin: Origin): Promise<boolean> {
    const known = hash ?? this.#nobodys;
    return (await this.#queue.run(origin, () => passwordMatches(password, known))) && hash !== undefined;
  }

  /** Whether the hash should be made anew, now that the password is at hand. */
  needsRehash(hash: string): boolean {
    return needsRehash(hash, this.#cost);
  }
}
