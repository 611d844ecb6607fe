/**
 * Sign-in by OpenID Connect on the command line, by the device flow (RFC 8628): the program gets a handle and shows a
 * code, the person confirms the code at the provider in any browser, and the program asks until there is a session.
 * Only the vault talks to the provider, and the device code never leaves it. What has begun is in the database, sealed
 * and found by the hash of its handle, so that any node can continue. Anyone can begin, so the number is bounded.
 */
import { minute, second } from '../../base/duration.ts';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { sha256 } from '../../base/sha256.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  countOidcResults,
  deleteOidcResult,
  findOidcResult,
  insertOidcUse,
  replaceOidcResult,
} from '../../db/tables/access/oidc-uses.ts';
import { neighborhood } from '../../net/ip-network.ts';
import type { SignedIn, Visitor } from '../access/identity.ts';
import { TokenBuckets } from '../access/limits/token-buckets.ts';
import type { SignIn } from '../access/sign-in.ts';
import type { Attempt } from '../access/sign-in-backoff.ts';
import type { SecretsContext } from '../contexts.ts';
import type { OidcAdmission } from './oidc-admission.ts';
import type { DeviceAuthorization, DeviceResult, OidcProvider } from './oidc-provider.ts';
import { openJson, pendingLifetime, sealJson } from './pending-sign-in.ts';
import { OidcRefusal } from './refusal.ts';

/** A sign-in that has begun, for the program that began it. */
export type BegunDeviceSignIn = Pick<
  DeviceAuthorization,
  'userCode' | 'verificationUri' | 'verificationUriComplete' | 'interval'
> & {
  /** With it, and only with it, the program gets the session. */
  readonly handle: Secret<string>;
  /** UTC milliseconds. */
  readonly expiresAt: number;
};

/** The person has not confirmed the sign-in yet; ask again after this many milliseconds. */
export type DeviceWait = { readonly interval: number };

/** What is sealed; times are UTC milliseconds. */
type Pending = {
  readonly deviceCode: string;
  readonly issuer: string;
  readonly clientId: string;
  readonly expiresAt: number;
  readonly interval: number;
  /** When the program may ask again. */
  readonly nextAt: number;
};

/** How many sign-ins of all addresses wait at most, on all nodes together. */
const maxPending = 100;

const byAddress = { burst: 5, perMinute: 1 };

/** Of one node. */
const byNode = { burst: 30, perMinute: 20 };

const [minInterval, maxInterval] = [second, minute];

/** How much longer the interval is after each `slow_down` (RFC 8628 §3.5). */
const slowdown = 5 * second;

const method = 'device_flow';

export class DeviceSignIn {
  readonly #vault: SecretsContext;
  readonly #signIn: SignIn;
  readonly #admission: OidcAdmission;
  readonly #provider: OidcProvider;
  readonly #addresses: TokenBuckets;
  readonly #all: TokenBuckets;

  constructor(vault: SecretsContext, signIn: SignIn, admission: OidcAdmission, provider: OidcProvider) {
    this.#vault = vault;
    this.#signIn = signIn;
    this.#admission = admission;
    this.#provider = provider;
    this.#addresses = new TokenBuckets(vault.world, byAddress);
    this.#all = new TokenBuckets(vault.world, byNode, 1);
  }

  /**
   * Begins a sign-in for a program at this address. Throws OidcRefusal if the provider cannot be used, `not_found` if
   * the settings or the provider do not offer it, and `rate_limited`.
   */
  async begin(address: string | undefined): Promise<BegunDeviceSignIn> {
    const { db, world } = this.#vault;
    const { issuer, clientId, deviceFlow } = this.#provider.settings;
    if (deviceFlow !== true)
      throw notOffered('The settings of the vault do not allow it (oidc-device-flow).');
    // One address cannot use up what all have together.
    const wait =
      this.#addresses.take(address === undefined ? 'unknown' : neighborhood(address)) ||
      this.#all.take('all');
    if (wait > 0) throw tooManyBegun(wait);
    await this.#refuseTooMany(db.reader);
    const begun = await this.#admission.logged(() => this.#provider.beginDevice());
    if (begun === undefined) throw notOffered('The identity provider does not offer it.');
    const handle = world.randomBytes(32).toString('base64url');
    const idHash = idHashOf(handle);
    const now = world.now();
    const expiresAt = now + Math.min(begun.lifetime, pendingLifetime);
    const interval = Math.min(maxInterval, Math.max(minInterval, begun.interval));
    const result = await this.#sealed(idHash, {
      deviceCode: begun.deviceCode.expose(),
      ...{ issuer, clientId, expiresAt, interval, nextAt: now + interval },
    });
    await db.write(async (writer) => {
      await this.#refuseTooMany(writer);
      await insertOidcUse(writer, idHash, { now, expiresAt, result });
    });
    return { ...begun, handle: new Secret(handle), expiresAt, interval };
  }

  /**
   * The session of the person who has confirmed the sign-in with this handle, or how long to wait. Throws OidcRefusal,
   * recorded in the audit log, and `rate_limited` for a program that does not wait.
   */
  async finish(handle: Secret<string>, visitor: Visitor): Promise<SignedIn | DeviceWait> {
    const attempt = this.#signIn.backoff.begin(undefined, visitor.actor.ip, 'stranger');
    const idHash = idHashOf(handle.expose());
    try {
      const result = await this.#step(idHash, visitor, attempt);
      if ('token' in result) attempt.succeeded();
      return result;
    } catch (error) {
      const isRefused = error instanceof OidcRefusal && error.code !== 'provider_unreachable';
      if (isRefused) await this.#admission.recordRefusal(visitor.actor, error, { method });
      else attempt.withdrawn();
      throw error;
    }
  }

  async #step(idHash: Buffer, visitor: Visitor, attempt: Attempt): Promise<SignedIn | DeviceWait> {
    const { pending, blob } = await this.#pendingOf(idHash);
    const early = pending.nextAt - this.#vault.world.now();
    if (early > 0) throw tooEarly(early);
    const { interval } = pending;
    const claimed = await this.#postponed(idHash, blob, pending);
    if (claimed === undefined) throw tooEarly(interval);
    const result = await this.#ask(idHash, pending);
    if (typeof result === 'object') return this.#admit(idHash, result, visitor);
    attempt.withdrawn();
    if (result === 'pending') return { interval };
    const longer = Math.min(maxInterval, interval + slowdown);
    await this.#postponed(idHash, claimed, { ...pending, interval: longer });
    return { interval: longer };
  }

  /** What has begun with this handle. Throws OidcRefusal. */
  async #pendingOf(idHash: Buffer): Promise<{ readonly pending: Pending; readonly blob: Buffer }> {
    const blob = await findOidcResult(this.#vault.db.reader, idHash);
    const pending = blob && openJson<Pending>(this.#vault, kindOf(idHash), blob);
    if (blob === undefined || pending === undefined || this.#vault.world.now() >= pending.expiresAt) {
      throw new OidcRefusal('expired', 'unknown, used or expired device sign-in');
    }
    const { issuer, clientId, deviceFlow } = this.#provider.settings;
    if (pending.issuer !== issuer || pending.clientId !== clientId || deviceFlow !== true) {
      throw new OidcRefusal('expired', 'sign-in begun with other settings');
    }
    return { pending, blob };
  }

  /** Forbids further requests for the interval. Returns undefined if another request has done so meanwhile. */
  async #postponed(idHash: Buffer, from: Buffer, pending: Pending): Promise<Buffer | undefined> {
    const { db, world } = this.#vault;
    const to = await this.#sealed(idHash, { ...pending, nextAt: world.now() + pending.interval });
    return (await db.write((writer) => replaceOidcResult(writer, idHash, { from, to }))) ? to : undefined;
  }

  /** Asks the provider, and forgets the sign-in if the provider refuses it. */
  async #ask(idHash: Buffer, { deviceCode }: Pending): Promise<DeviceResult> {
    try {
      return await this.#admission.logged(() => this.#provider.pollDevice(new Secret(deviceCode)));
    } catch (error) {
      if (error instanceof OidcRefusal && error.code !== 'provider_unreachable') {
        await this.#vault.db.write((writer) => deleteOidcResult(writer, idHash));
      }
      throw error;
    }
  }

  /** Admits the person, and forgets the sign-in: in the transaction of the session, or alone if there is none. */
  async #admit(idHash: Buffer, person: Exclude<DeviceResult, string>, visitor: Visitor): Promise<SignedIn> {
    const use = (writer: Writer) => deleteOidcResult(writer, idHash);
    try {
      return await this.#admission.admit(person, use, { ...visitor, method });
    } catch (error) {
      await this.#vault.db.write(use);
      throw error;
    }
  }

  #sealed(idHash: Buffer, pending: Pending): Promise<Buffer> {
    return sealJson(this.#vault, kindOf(idHash), pending);
  }

  async #refuseTooMany(reader: Reader): Promise<void> {
    const waiting = await countOidcResults(reader, this.#vault.world.now(), maxPending);
    if (waiting >= maxPending) throw tooManyBegun(minute);
  }
}

/** Each sealed sign-in opens only in the row of its own handle. */
function kindOf(idHash: Buffer): `device sign-in ${string}` {
  return `device sign-in ${idHash.toString('hex')}`;
}

function idHashOf(handle: string): Buffer {
  return sha256(`device sign-in ${handle}`);
}

function notOffered(why: string): Problem {
  return new Problem('not_found', {
    detail: `Sign-in by OpenID Connect on the command line is not available. ${why}`,
    hint: 'Use an API key: vault login',
  });
}

function tooManyBegun(wait: number): Problem {
  return new Problem('rate_limited', {
    detail: 'Too many sign-ins have begun; retry after the time in Retry-After.',
    retryAfter: Math.ceil(wait / second),
  });
}

function tooEarly(wait: number): Problem {
  return new Problem('rate_limited', {
    detail: 'The sign-in is not confirmed yet; retry after the time in Retry-After.',
    retryAfter: Math.ceil(wait / second),
  });
}
