/**
 * Hashes passwords, a few at a time. Each takes 64 MiB and a quarter of a second, so callers wait or are refused
 * instead of overloading the server.
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
} from '../../crypto/secrets/password-hash.ts';
import { passwordIssue } from './password-policy.ts';
import { type Origin, PasswordQueue } from './password-queue.ts';

export class Passwords {
  readonly #world: World;
  readonly #cost: HashCost;
  readonly #dummyHash: string;
  readonly #queue = new PasswordQueue();

  constructor(world: World, cost: HashCost = hashCost) {
    this.#world = world;
    this.#cost = cost;
    this.#dummyHash = dummyPasswordHash(world, cost);
  }

  /**
   * The hash of a new password for this name. Throws `invalid_request` if it violates the password policy, and
   * `rate_limited`.
   */
  async choose(name: string, password: Secret<string>, path = 'password'): Promise<string> {
    const message = passwordIssue(name, password.expose());
    if (message !== undefined) {
      throw new Problem('invalid_request', { detail: `${path}: ${message}.`, errors: [{ path, message }] });
    }
    return this.hash(password);
  }

  /** The hash at the current cost. Throws `rate_limited`. */
  hash(password: Secret<string>): Promise<string> {
    return this.#queue.run('known', () => hashPassword(this.#world, password, this.#cost));
  }

  /**
   * Whether the password matches the hash. Without a hash it returns false after the same time. Throws `rate_limited`
   * if too many are waiting.
   */
  async matches(password: Secret<string>, hash: string | undefined, origin: Origin): Promise<boolean> {
    const known = hash ?? this.#dummyHash;
    return (await this.#queue.run(origin, () => passwordMatches(password, known))) && hash !== undefined;
  }

  /** Whether the hash has a lower cost than today's and should be replaced. */
  needsRehash(hash: string): boolean {
    return needsRehash(hash, this.#cost);
  }
}
