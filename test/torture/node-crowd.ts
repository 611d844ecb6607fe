/**
 * Users of a vault that several nodes serve: downloads, the lives of keys and sessions, imports and renewals. What one
 * node has acknowledged must hold at the next request to any node.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { PrivateChain } from '../harness/ca/private-chain.ts';
import type { Chance } from './chamber.ts';
import { administrator } from './crowd.ts';
import { newLeaf } from './imported-leaf.ts';
import type { Deed } from './ledger.ts';
import type { NodeAsker } from './node-asker.ts';
import {
  bearer,
  type Ending,
  type LentKey,
  type NodeDownloads,
  never,
  noKey,
  polled,
  unauthenticated,
} from './node-downloads.ts';
import type { Users } from './node-shifts.ts';

/** What they do. */
export const crowdKinds: readonly Deed['kind'][] = [
  ...(['download', 'poll', 'create key', 'revoke key', 'delete key', 'import'] as const),
  ...(['create certificate', 'delete certificate', 'renew', 'sign in', 'sign out'] as const),
];

export type NodeCrowdOptions = {
  readonly asker: NodeAsker;
  readonly downloads: NodeDownloads;
  readonly chain: PrivateChain;
  /** The key for all certificates, those that are downloaded, and those that are renewed. */
  readonly all: string;
  readonly certificates: readonly string[];
  readonly renewed: readonly string[];
  /** The number of concurrent downloads. */
  readonly clients: number;
};

type Session = Ending & { readonly name: string; readonly cookie: string };

const scopes = ['certificates:read', 'private_keys:read'];
const artifacts = [polled, 'private.key', 'fullchain.pem', 'certificate.crt'];

export class NodeCrowd {
  readonly #options: NodeCrowdOptions;
  readonly #asker: NodeAsker;
  readonly #downloads: NodeDownloads;
  #lent: readonly LentKey[] = [];
  #sessions: readonly Session[] = [];
  #names = 0;

  constructor(options: NodeCrowdOptions) {
    this.#options = options;
    this.#asker = options.asker;
    this.#downloads = options.downloads;
  }

  /** What they do, each at the same time as the others, again and again. */
  get users(): Users {
    return {
      client: { count: this.#options.clients, once: (chance) => this.#download(chance) },
      keys: { count: 2, once: (chance) => this.#liveKey(chance) },
      certificates: { count: 1, once: (chance) => this.#briefCertificate(chance) },
      imports: { count: 1, once: (chance) => this.#import(chance) },
      renewals: { count: 1, once: (chance) => this.#renew(chance) },
      people: { count: 1, once: (chance) => this.#signInAndOut(chance) },
    };
  }

  async #download(chance: Chance): Promise<void> {
    const certificate = chance.one(this.#options.certificates);
    const artifact = chance.one(artifacts);
    const own = this.#lent.filter((key) => key.certificate === certificate);
    const key = chance.happens(0.5) && own.length > 0 ? chance.one(own) : undefined;
    await this.#downloads.get(certificate, artifact, key);
    await delay(chance.whole(0, 30));
  }

  /** A key is created, used, mostly revoked, and then deleted; each counts everywhere at once. */
  async #liveKey(chance: Chance): Promise<void> {
    const cookie = await this.#cookie(chance);
    if (cookie === undefined) return;
    const name = this.#name('key');
    const certificate = chance.one(this.#options.certificates);
    const body = { name, scopes, certificates: [certificate] };
    const made = await this.#asker.deed(
      { kind: 'create key', name, certificate },
      {
        ...this.#asker.form('POST', '/api/v1/api-keys', cookie),
        body,
        good: [201],
        refused: unauthenticated,
      },
      (answer) => ({ raw: (JSON.parse(answer.body) as { key: string }).key }),
    );
    if (made === undefined) return;
    const { id } = JSON.parse(made.answer.body) as { id: number };
    const key: LentKey = { name, raw: made.said.raw ?? '', certificate, endsAt: never, endedAt: never };
    const path = `/api/v1/certificates/${certificate}${chance.one(['', '/private.key', '/fullchain.crt'])}`;
    this.#asker.everywhere(path, bearer(key.raw), [200], `${name} was created`, () => key.endsAt);
    this.#lent = [...this.#lent.slice(-12), key];
    await delay(chance.whole(50, 500));
    if (chance.happens(0.2)) return;
    key.endsAt = performance.now();
    const form = this.#asker.form('POST', `/api/v1/api-keys/${id}/revoke`, cookie);
    const revoked = await this.#asker.deed(
      { kind: 'revoke key', name },
      { ...form, good: [200], refused: unauthenticated },
    );
    if (revoked === undefined) return;
    key.endedAt = revoked.answered;
    this.#asker.everywhere(path, bearer(key.raw), noKey, `${name} was revoked`);
    this.#downloads.everywhere(certificate, noKey, `${name} was revoked`, key.raw);
    if (chance.happens(0.5)) return;
    const removed = await this.#asker.deed(
      { kind: 'delete key', name },
      {
        ...this.#asker.form('DELETE', `/api/v1/api-keys/${id}`, cookie),
        good: [204],
        refused: unauthenticated,
      },
    );
    if (removed === undefined) return;
    this.#asker.everywhere(path, bearer(key.raw), noKey, `${name} was deleted`);
    this.#downloads.everywhere(certificate, noKey, `${name} was deleted`, key.raw);
  }

  /** A certificate is created, downloaded, and mostly deleted; each counts everywhere at once. */
  async #briefCertificate(chance: Chance): Promise<void> {
    const cookie = await this.#cookie(chance);
    if (cookie === undefined) return;
    const certificate = this.#name('brief');
    const created = await this.#asker.deed(
      { kind: 'create certificate', certificate },
      {
        ...this.#asker.form('POST', '/api/v1/certificates', cookie),
        body: { name: certificate, domains: [`${certificate}.test`] },
        good: [201],
        refused: unauthenticated,
      },
    );
    if (created === undefined) return;
    let endsAt = never;
    const path = `/api/v1/certificates/${certificate}${chance.one(['', '/private.key', '/fullchain.crt'])}`;
    const why = `${certificate} was created`;
    this.#asker.everywhere(path, bearer(this.#options.all), [200], why, () => endsAt);
    await this.#downloads.get(certificate, polled);
    await delay(chance.whole(50, 500));
    if (chance.happens(0.1)) return;
    endsAt = performance.now();
    const deleted = await this.#asker.deed(
      { kind: 'delete certificate', certificate },
      {
        ...this.#asker.form('DELETE', `/api/v1/certificates/${certificate}`, cookie),
        good: [204],
        refused: unauthenticated,
      },
    );
    if (deleted === undefined) return;
    this.#asker.everywhere(path, bearer(this.#options.all), [404], `${certificate} was deleted`);
    this.#downloads.everywhere(certificate, [404], `${certificate} was deleted`);
  }

  async #renew(chance: Chance): Promise<void> {
    const certificate = chance.one(this.#options.renewed);
    const path = `/api/v1/certificates/${certificate}/renew`;
    await this.#asker.deed(
      { kind: 'renew', certificate },
      { path, method: 'POST', headers: bearer(this.#options.all), good: [202] },
      ({ body }) => ({ renewal: (JSON.parse(body) as { id: number }).id }),
    );
    await delay(chance.whole(100, 800));
  }

  async #import(chance: Chance): Promise<void> {
    const cookie = await this.#cookie(chance);
    if (cookie === undefined) return;
    const { fullchain, key, fingerprint } = await newLeaf(this.#options.chain);
    const certificate = chance.one(['imported-a', 'imported-b']);
    const before = this.#downloads.seen(certificate);
    const files = [
      { name: 'a.crt', text: fullchain },
      { name: 'a.key', text: key },
    ];
    const form = this.#asker.form('POST', '/api/v1/imports', cookie);
    const done = await this.#asker.deed(
      { kind: 'import', certificate, fingerprint },
      { ...form, body: { name: certificate, files }, good: [201], refused: unauthenticated },
      ({ body }) => ({ version: (JSON.parse(body) as { version: number }).version }),
    );
    if (done !== undefined) {
      const { version = 0 } = done.said;
      const { sent, answered, answer } = done;
      const times = `sent at ${Math.round(sent)} ms, answered at ${Math.round(answered)} ms`;
      const request = answer.headers['x-request-id'];
      const why = `version ${version} was imported (${times}, request ${request})`;
      const path = `/api/v1/certificates/${certificate}/${polled}?version=${version}`;
      this.#asker.everywhere(path, bearer(this.#options.all), [200], why);
      // What every client has is replaced, so no node may say that it has not changed.
      this.#downloads.everywhere(certificate, [200], why, this.#options.all, before);
      this.#downloads.replaced(certificate, version);
      await this.#downloads.get(certificate, polled);
    }
    await delay(chance.whole(300, 1000));
  }

  /** Signs in, and out of an earlier session; each counts everywhere at once. */
  async #signInAndOut(chance: Chance): Promise<void> {
    const name = this.#name('session');
    const form = this.#asker.form('POST', '/api/v1/session', undefined);
    const opened = await this.#asker.deed(
      { kind: 'sign in', session: name },
      { ...form, body: administrator, good: [201] },
      ({ headers }) => ({ cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' }),
    );
    if (opened !== undefined) {
      const session: Session = { name, cookie: opened.said.cookie ?? '', endsAt: never, endedAt: never };
      const { cookie } = session;
      this.#asker.everywhere(
        ownSession,
        { Cookie: cookie },
        [200],
        `${name} was opened`,
        () => session.endsAt,
      );
      this.#sessions = [...this.#sessions, session];
      const [oldest] = this.#sessions;
      // The newest is also that of the others.
      if (oldest !== undefined && this.#sessions.length > 1) await this.#signOut(oldest);
    }
    await delay(chance.whole(300, 1500));
  }

  async #signOut(session: Session): Promise<void> {
    this.#sessions = this.#sessions.filter((other) => other !== session);
    session.endsAt = performance.now();
    const { name, cookie } = session;
    const form = this.#asker.form('DELETE', ownSession, cookie);
    const over = await this.#asker.deed({ kind: 'sign out', session: name }, { ...form, good: [204] });
    if (over === undefined) return;
    session.endedAt = over.answered;
    this.#asker.everywhere(ownSession, { Cookie: cookie }, [401], `${name} is over`);
  }

  /** That of the newest session. */
  async #cookie(chance: Chance): Promise<string | undefined> {
    const cookie = this.#sessions.at(-1)?.cookie;
    if (cookie === undefined) await delay(chance.whole(20, 50));
    return cookie;
  }

  #name(what: string): string {
    return `${what}-${++this.#names}`;
  }
}

const ownSession = '/api/v1/session';
