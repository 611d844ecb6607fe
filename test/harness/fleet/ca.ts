/**
 * A CA of a fleet simulation, behind the vault's outbound HTTP and on the clock of the simulation: it validates dns-01
 * by the simulated DNS, issues real certificates, and refuses what exceeds the limits that Let's Encrypt publishes.
 */
import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { renewalInfoId } from '../../../src/acme/renewal-info.ts';
import { day, hour, second } from '../../../src/base/duration.ts';
import type { World } from '../../../src/base/world.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { issueLeaf } from '../../../src/crypto/x509/leaf-certificate.ts';
import {
  OutboundError,
  type OutboundRequest,
  type OutboundResponse,
} from '../../../src/net/outbound-http.ts';
import { identifier, type PrivateChain } from '../ca/private-chain.ts';

export type FleetCaPlan = {
  /** `https://host/directory` */
  readonly directoryUrl: string;
  readonly lifetime: number;
  readonly hasRenewalInfo: boolean;
  /** While it is down (UTC milliseconds) no request is answered. */
  readonly down?: readonly [from: number, to: number] | undefined;
};

/** Why the CA never issues for some names. */
export type FleetRefusal = 'rejected' | 'limited' | 'unvalidated';

type Json = Record<string, unknown>;
type Authorization = {
  readonly name: string;
  readonly token: string;
  status: 'pending' | 'valid' | 'invalid';
};
type Order = {
  readonly names: readonly string[];
  readonly authorizations: readonly string[];
  readonly replaces: string | undefined;
  status: 'pending' | 'ready' | 'valid' | 'invalid';
  pem: string;
};

class Refused extends Error {
  readonly status: number;
  readonly type: string;
  readonly retryAfter: number | undefined;

  constructor(status: number, type: string, detail: string, retryAfter?: number) {
    super(detail);
    this.status = status;
    this.type = type;
    this.retryAfter = retryAfter;
  }
}

export class FleetCa {
  readonly plan: FleetCaPlan;
  /** The limits that requests met: when, and what the CA said. */
  readonly limitsMet: string[] = [];
  issued = 0;
  readonly #world: World;
  readonly #chain: PrivateChain;
  readonly #txt: (name: string) => string[];
  readonly #refusals: ReadonlyMap<string, FleetRefusal>;
  readonly #origin: string;
  readonly #accounts = new Map<string, string>();
  readonly #thumbprints = new Map<string, string>();
  readonly #orders = new Map<string, Order>();
  readonly #authorizations = new Map<string, Authorization>();
  readonly #certificates = new Map<string, { readonly from: number; isReplaced: boolean }>();
  readonly #counts = new Map<string, number[]>();
  readonly #sets = new Set<string>();
  #number = 0;

  constructor(
    plan: FleetCaPlan,
    parts: {
      readonly world: World;
      readonly chain: PrivateChain;
      /** What the name servers show. */
      readonly txt: (name: string) => string[];
      /** By the first label of the name. */
      readonly refusals: ReadonlyMap<string, FleetRefusal>;
    },
  ) {
    this.plan = plan;
    this.#world = parts.world;
    this.#chain = parts.chain;
    this.#txt = parts.txt;
    this.#refusals = parts.refusals;
    this.#origin = new URL(plan.directoryUrl).origin;
  }

  /** A certificate that it issued before the simulation began, DER. */
  async issueEarlier(names: readonly string[], publicKey: Buffer, notBefore: number): Promise<Buffer> {
    return this.#issue(names, publicKey, notBefore);
  }

  async answer({ url, method, body, signal }: OutboundRequest): Promise<OutboundResponse> {
    const { down } = this.plan;
    const now = this.#world.now();
    if (down !== undefined && now >= down[0] && now < down[1]) {
      await this.#world.sleep(30 * second, signal);
      throw new OutboundError('timeout', 'the CA does not answer');
    }
    const headers: Record<string, string> = {
      'content-type': 'application/json',
      'replay-nonce': randomBytes(8).toString('base64url'),
    };
    try {
      const path = new URL(url).pathname;
      const {
        json = {},
        location,
        pem,
      } = method === 'POST' ? await this.#signed(path, String(body)) : this.#plain(path);
      if (location !== undefined) headers.location = this.#origin + location;
      if (pem !== undefined) headers['content-type'] = 'application/pem-certificate-chain';
      const status = location === undefined ? 200 : 201;
      return { status, headers, body: Buffer.from(pem ?? JSON.stringify(json)) };
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const { status, type, message: detail, retryAfter } = error;
      headers['content-type'] = 'application/problem+json';
      if (retryAfter !== undefined) headers['retry-after'] = String(Math.ceil(retryAfter / second));
      const problem = { type: `urn:ietf:params:acme:error:${type}`, detail, status };
      return { status, headers, body: Buffer.from(JSON.stringify(problem)) };
    }
  }

  #plain(path: string): { json?: Json; location?: string; pem?: string } {
    const at = (name: string) => `${this.#origin}/${name}`;
    if (path === '/directory') {
      const { hasRenewalInfo } = this.plan;
      const endpoints = [
        'newNonce',
        'newAccount',
        'newOrder',
        'revokeCert',
        'keyChange',
        ...(hasRenewalInfo ? ['renewalInfo'] : []),
      ];
      return { json: Object.fromEntries(endpoints.map((name) => [name, at(name)])) };
    }
    const id = /^\/renewalInfo\/(.+)$/.exec(path)?.[1];
    const known = id === undefined ? undefined : this.#certificates.get(id);
    if (id !== undefined && known === undefined) throw new Refused(404, 'malformed', 'no such certificate');
    if (known === undefined) return {};
    const { lifetime } = this.plan;
    const start = known.from + lifetime * (lifetime < 10 * day ? 0.5 : 2 / 3);
    const window = [start, start + lifetime / 50].map((moment) => new Date(moment).toISOString());
    return { json: { suggestedWindow: { start: window[0], end: window[1] } } };
  }

  async #signed(path: string, body: string): Promise<{ json?: Json; location?: string; pem?: string }> {
    const jws = JSON.parse(body) as { protected: string; payload: string };
    const header = decoded(jws.protected) as { jwk?: Json; kid?: string };
    const payload = jws.payload === '' ? {} : decoded(jws.payload);
    if (path === '/newAccount') return this.#account(header.jwk ?? {});
    const account = new URL(header.kid ?? '').pathname;
    if (path === '/newOrder') return this.#newOrder(account, payload);
    const [, kind = '', id = '', last] = path.split('/');
    if (kind === 'authorization') return { json: this.#authorizationBody(id) };
    if (kind === 'challenge') return { json: this.#validate(account, id) };
    const order = this.#orders.get(id);
    if (kind !== 'order' || order === undefined) throw new Refused(404, 'malformed', 'nothing here');
    if (last === 'certificate') return { pem: order.pem };
    if (last === 'finalize') await this.#finalize(order, String(payload.csr));
    return { json: this.#orderBody(id, order) };
  }

  #account(jwk: Json): { json: Json; location: string } {
    const { crv, kty, x, y } = jwk;
    const thumbprint = createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url');
    const url = this.#accounts.get(thumbprint) ?? `/account/${++this.#number}`;
    this.#accounts.set(thumbprint, url);
    this.#thumbprints.set(url, thumbprint);
    return { json: { status: 'valid' }, location: url };
  }

  #newOrder(account: string, payload: Json): { json: Json; location: string } {
    const names = (payload.identifiers as { value: string }[]).map(({ value }) => value);
    const refusal = this.#refusals.get(names[0]?.split('.')[0] ?? '');
    if (refusal === 'rejected') throw new Refused(400, 'rejectedIdentifier', 'the name is not issued for');
    if (refusal === 'limited') throw new Refused(429, 'rateLimited', 'too much of this', 3 * day);
    const set = names.toSorted().join();
    const replaces = payload.replaces as string | undefined;
    const replaced = replaces === undefined ? undefined : this.#certificates.get(replaces);
    const isExempt = replaced !== undefined && !replaced.isReplaced;
    if (!isExempt) {
      this.#require(
        `set ${set}`,
        5,
        7 * day,
        'too many certificates (5) already issued for this exact set of identifiers',
      );
      if (!this.#sets.has(set)) {
        this.#require(`account ${account}`, 300, 3 * hour, 'too many new orders (300) from this account');
        for (const domain of new Set(names.map(domainOf))) {
          this.#require(
            `domain ${domain}`,
            50,
            7 * day,
            `too many certificates (50) already issued for "${domain}"`,
          );
        }
      }
    }
    for (const name of names) {
      this.#require(`failures ${name}`, 5, hour, `too many failed authorizations (5) for "${name}"`);
    }
    this.#count(`account ${account}`);
    const id = String(++this.#number);
    const authorizations = names.map((name) => {
      const authorization = `${id}-${++this.#number}`;
      this.#authorizations.set(authorization, {
        name,
        token: randomBytes(16).toString('base64url'),
        status: 'pending',
      });
      return authorization;
    });
    const order: Order = { names, authorizations, replaces, status: 'pending', pem: '' };
    this.#orders.set(id, order);
    return { json: this.#orderBody(id, order), location: `/order/${id}` };
  }

  #orderBody(id: string, order: Order): Json {
    const states = order.authorizations.map((one) => this.#authorizations.get(one)?.status);
    if (order.status === 'pending' && states.every((status) => status === 'valid')) order.status = 'ready';
    if (order.status === 'pending' && states.includes('invalid')) order.status = 'invalid';
    const { status, names, authorizations, replaces } = order;
    return {
      ...{ status, replaces, finalize: `${this.#origin}/order/${id}/finalize` },
      identifiers: names.map((value) => ({ type: 'dns', value })),
      authorizations: authorizations.map((one) => `${this.#origin}/authorization/${one}`),
      ...(status === 'valid' && { certificate: `${this.#origin}/order/${id}/certificate` }),
    };
  }

  #authorizationBody(id: string): Json {
    const { name, token, status } = this.#known(id);
    const url = `${this.#origin}/challenge/${id}`;
    const error =
      status === 'invalid'
        ? { type: 'urn:ietf:params:acme:error:unauthorized', detail: 'no record' }
        : undefined;
    return {
      ...{ status, identifier: { type: 'dns', value: name } },
      challenges: [{ type: 'dns-01', url, token, status, error }],
    };
  }

  #validate(account: string, id: string): Json {
    const authorization = this.#known(id);
    const { name, token, status } = authorization;
    if (status === 'pending') {
      const key = `${token}.${this.#thumbprints.get(account)}`;
      const value = createHash('sha256').update(key).digest('base64url');
      const isBroken = this.#refusals.get(name.split('.')[0] ?? '') === 'unvalidated';
      const isShown = !isBroken && this.#txt(`_acme-challenge.${name}`).includes(value);
      authorization.status = isShown ? 'valid' : 'invalid';
      if (!isShown) this.#count(`failures ${name}`);
    }
    return { type: 'dns-01', url: `${this.#origin}/challenge/${id}`, token, status: authorization.status };
  }

  async #finalize(order: Order, csr: string): Promise<void> {
    if (order.status !== 'ready') throw new Refused(403, 'orderNotReady', 'the order is not ready');
    const { Pkcs10CertificateRequest } = await import('@peculiar/x509');
    const request = new Pkcs10CertificateRequest(Buffer.from(csr, 'base64url'));
    const set = order.names.toSorted().join();
    const isRenewal = this.#sets.has(set);
    const leaf = await this.#issue(order.names, Buffer.from(request.publicKey.rawData), this.#world.now());
    order.pem = [leaf, this.#chain.intermediate.certificate]
      .map((der) => encodePem('CERTIFICATE', der))
      .join('');
    order.status = 'valid';
    this.issued += 1;
    this.#count(`set ${set}`);
    if (!isRenewal) for (const domain of new Set(order.names.map(domainOf))) this.#count(`domain ${domain}`);
    const replaced = order.replaces === undefined ? undefined : this.#certificates.get(order.replaces);
    if (replaced !== undefined) replaced.isReplaced = true;
  }

  async #issue(names: readonly string[], publicKey: Buffer, notBefore: number): Promise<Buffer> {
    const leaf = await issueLeaf({
      ...{ identifiers: names.map(identifier), publicKey, serial: randomBytes(16), notBefore },
      ...{ notAfter: notBefore + this.plan.lifetime, issuer: this.#chain.intermediate },
    });
    const from = new X509Certificate(leaf).validFromDate.getTime();
    this.#certificates.set(renewalInfoId(leaf) ?? '', { from, isReplaced: false });
    this.#sets.add(names.toSorted().join());
    return leaf;
  }

  #known(id: string): Authorization {
    const authorization = this.#authorizations.get(id);
    if (authorization === undefined) throw new Refused(404, 'malformed', 'no such authorization');
    return authorization;
  }

  #count(key: string): void {
    this.#counts.set(key, [...(this.#counts.get(key) ?? []), this.#world.now()].slice(-300));
  }

  /** Refuses with 429 where as many were counted within the window as there may be. */
  #require(key: string, most: number, within: number, detail: string): void {
    const now = this.#world.now();
    const times = (this.#counts.get(key) ?? []).filter((moment) => moment > now - within);
    if (times.length < most) return;
    this.limitsMet.push(`${new Date(now).toISOString()} ${this.#origin}: ${detail}`);
    throw new Refused(429, 'rateLimited', detail, (times.at(-most) ?? now) + within - now);
  }
}

function decoded(text: string): Json {
  return JSON.parse(Buffer.from(text, 'base64url').toString()) as Json;
}

/** The registered domain: names of the simulation are under `example.test` zones of two labels. */
function domainOf(name: string): string {
  return name.split('.').slice(-2).join('.');
}
