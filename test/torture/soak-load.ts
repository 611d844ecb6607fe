/**
 * The mixed load of a soak test over HTTPS: clients that poll and download, callers with invalid keys, people who sign
 * in, listen for events and create keys, renewals, and short connections. Each counts its responses for the comparison
 * at the end.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { setTimeout as delay } from 'node:timers/promises';

export const administrator = { name: 'soaker', password: 'correct horse battery staple' };

export type Books = {
  /** Responses to clients: `304`, `200`, … */
  readonly answers: Map<string, number>;
  downloads: number;
  signIns: number;
  signOuts: number;
  keysMade: number;
  keysDeleted: number;
  /** Rejections of revoked keys. */
  revokedRefused: number;
  renewalsAsked: number;
  listeners: number;
  events: number;
  handshakes: number;
};

type Reply = { readonly status: number; readonly headers: IncomingHttpHeaders; readonly body: string };

type Question = {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly agent?: Agent;
};

export class SoakLoad {
  readonly books: Books = {
    ...{ answers: new Map(), downloads: 0, signIns: 0, signOuts: 0, keysMade: 0, keysDeleted: 0 },
    ...{ revokedRefused: 0, renewalsAsked: 0, listeners: 0, events: 0, handshakes: 0 },
  };
  readonly #url: string;
  readonly #key: string;
  readonly #certificates: readonly string[];
  readonly #kept = new Agent({ keepAlive: true, maxSockets: 32, rejectUnauthorized: false });
  readonly #over = new AbortController();
  /** How many short-lived keys were created: no two keys have one name. */
  #keys = 0;
  #etags = new Map<string, string>();

  constructor(url: string, key: string, certificates: readonly string[]) {
    this.#url = url;
    this.#key = key;
    this.#certificates = certificates;
  }

  /** The requests per second of eight clients without pauses. */
  async capacity(ms: number): Promise<number> {
    const before = this.#answered();
    const over = performance.now() + ms;
    await Promise.all(
      Array.from({ length: 8 }, async (_, line) => {
        for (let turn = line; performance.now() < over; turn += 1) await this.#clientsTurn(turn);
      }),
    );
    return ((this.#answered() - before) * 1000) / ms;
  }

  /** Runs the load until `leave`, with this many requests per second of all clients. Rejects with the first error. */
  async run(rate: number): Promise<void> {
    const lines = 8;
    const every = (lines * 1000) / rate;
    const clients = Array.from({ length: lines }, (_, line) =>
      this.#paced(every, (turn) => this.#clientsTurn(turn + line)),
    );
    await Promise.all([
      ...clients,
      // One for every five clients, enough to show a leak per rejected caller.
      this.#paced(5000 / rate, () => this.#stranger()),
      this.#paced(1000, () => this.#newConnections()),
      this.#paced(2000, () => this.#person()),
      this.#paced(5000, (turn) => this.#renewal(turn)),
    ]).finally(() => this.leave());
  }

  leave(): void {
    this.#over.abort();
  }

  close(): void {
    this.#kept.destroy();
  }

  /** Starts at a fixed interval; skips late starts. */
  async #paced(every: number, work: (turn: number) => Promise<void>): Promise<void> {
    const { signal } = this.#over;
    let due = performance.now();
    for (let turn = 0; !signal.aborted; turn += 1) {
      await work(turn);
      due = Math.max(due + every, performance.now() - every);
      const wait = due - performance.now();
      if (wait > 1) await delay(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Of ten requests, six get a 304, two download and two read metadata. */
  async #clientsTurn(turn: number): Promise<void> {
    const name = this.#certificates[turn % this.#certificates.length];
    const path = `/api/v1/certificates/${name}`;
    const kind = turn % 10;
    if (kind >= 8) {
      await this.#client(path);
      return;
    }
    const file = `${path}/${kind % 2 === 0 ? 'fullchain.crt' : 'private.key'}`;
    const etag = kind < 6 ? this.#etags.get(file) : undefined;
    const { status, headers } = await this.#client(file, etag);
    if (status === 200) {
      this.books.downloads += 1;
      this.#etags.set(file, String(headers.etag));
    }
  }

  async #client(path: string, etag?: string): Promise<Reply> {
    const reply = await this.#call(path, {
      agent: this.#kept,
      headers: { Authorization: `Bearer ${this.#key}`, ...(etag !== undefined && { 'If-None-Match': etag }) },
    });
    assert.ok(reply.status === 200 || reply.status === 304, `${path}: ${reply.status} ${reply.body}`);
    this.#count(String(reply.status));
    return reply;
  }

  async #stranger(): Promise<void> {
    const headers = { Authorization: `Bearer vk_${'a'.repeat(12)}.${'b'.repeat(43)}` };
    const { status } = await this.#call('/api/v1/certificates', { agent: this.#kept, headers });
    assert.ok(status === 401 || status === 429, `an invalid key got status ${status}`);
    this.#count(String(status));
  }

  /** Five clients with a new connection for each request. */
  async #newConnections(): Promise<void> {
    for (let count = 0; count < 5; count += 1) {
      const agent = new Agent({ maxCachedSessions: 0, rejectUnauthorized: false });
      const { status } = await this.#call('/api/v1/health', { agent });
      assert.equal(status, 200);
      agent.destroy();
      this.books.handshakes += 1;
    }
  }

  /** Signs in, listens, makes a change, of which the stream tells, and signs out. */
  async #person(): Promise<void> {
    const session = await this.#signIn();
    const { changed, destroy } = await this.#listen(session);
    await this.#keysLife(session);
    await changed;
    await delay(1000, undefined, { signal: this.#over.signal }).catch(() => undefined);
    destroy();
    await this.#signOut(session);
  }

  /** A person creates a key, which is used, revoked, rejected and deleted. */
  async #keysLife(session: Readonly<Record<string, string>>): Promise<void> {
    this.#keys += 1;
    const body = { name: `short-lived ${this.#keys}`, scopes: ['certificates:read'], certificates: ['*'] };
    const path = '/api/v1/api-keys';
    const made = await this.#call(path, { method: 'POST', headers: session, body, agent: this.#kept });
    assert.equal(made.status, 201, made.body);
    this.books.keysMade += 1;
    const { id, key } = JSON.parse(made.body) as { id: number; key: string };
    const use = () =>
      this.#call('/api/v1/certificates', { headers: { Authorization: `Bearer ${key}` }, agent: this.#kept });
    assert.equal((await use()).status, 200);
    const revoked = await this.#call(`${path}/${id}/revoke`, {
      method: 'POST',
      headers: session,
      agent: this.#kept,
    });
    assert.equal(revoked.status, 200, revoked.body);
    const { status } = await use();
    assert.ok(status === 401 || status === 429, `a revoked key got status ${status}`);
    // Rate-limited requests of the revoked key must also be recorded.
    this.books.revokedRefused += 1;
    const deleted = await this.#call(`${path}/${id}`, {
      method: 'DELETE',
      headers: session,
      agent: this.#kept,
    });
    assert.equal(deleted.status, 204, deleted.body);
    this.books.keysDeleted += 1;
  }

  async #renewal(turn: number): Promise<void> {
    const name = this.#certificates[turn % this.#certificates.length];
    const headers = { Authorization: `Bearer ${this.#key}` };
    const path = `/api/v1/certificates/${name}/renew`;
    const asked = await this.#call(path, { method: 'POST', headers, agent: this.#kept });
    assert.equal(asked.status, 202, asked.body);
    this.books.renewalsAsked += 1;
    const place = String(asked.headers.location);
    for (;;) {
      const { body } = await this.#call(place, { headers, agent: this.#kept });
      const { status } = JSON.parse(body) as { status: string };
      assert.notEqual(status, 'failed', body);
      if (status === 'succeeded') return;
      await delay(50);
    }
  }

  async #signIn(): Promise<Readonly<Record<string, string>>> {
    const headers = { Origin: this.#url };
    const question = { method: 'POST', headers, body: administrator, agent: this.#kept };
    const reply = await this.#call('/api/v1/session', question);
    assert.equal(reply.status, 201, reply.body);
    this.books.signIns += 1;
    return { ...headers, Cookie: reply.headers['set-cookie']?.[0]?.split(';')[0] ?? '' };
  }

  async #signOut(session: Readonly<Record<string, string>>): Promise<void> {
    const question = { method: 'DELETE', headers: session, agent: this.#kept };
    assert.equal((await this.#call('/api/v1/session', question)).status, 204);
    this.books.signOuts += 1;
  }

  /**
   * Opens a stream of events over a new connection; `changed` resolves at the first, and rejects when the stream ends.
   */
  async #listen(
    session: Readonly<Record<string, string>>,
  ): Promise<{ readonly changed: Promise<void>; readonly destroy: () => void }> {
    const sent = request(new URL('/api/v1/events', this.#url), {
      headers: session,
      agent: false,
      rejectUnauthorized: false,
      signal: AbortSignal.timeout(30_000),
    });
    sent.on('error', () => undefined).end();
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    assert.equal(reply.statusCode, 200);
    this.books.listeners += 1;
    const { promise: changed, resolve, reject } = Promise.withResolvers<void>();
    changed.catch(() => undefined);
    const ended = () => reject(new Error('the stream of events ended without one'));
    reply.on('error', ended).on('end', ended).setEncoding('utf8');
    reply.on('data', (piece: string) => {
      const events = piece.split('event: change').length - 1;
      this.books.events += events;
      if (events > 0) resolve();
    });
    return { changed, destroy: () => sent.destroy() };
  }

  async #call(path: string, { body, ...init }: Question): Promise<Reply> {
    const headers = { ...init.headers, ...(body !== undefined && { 'Content-Type': 'application/json' }) };
    const sent = request(new URL(path, this.#url), { ...init, headers, timeout: 30_000 });
    sent.on('timeout', () => sent.destroy(new Error(`no response within 30 s: ${path}`)));
    sent.end(body === undefined ? undefined : JSON.stringify(body));
    const [reply] = (await once(sent, 'response')) as [IncomingMessage];
    let text = '';
    for await (const piece of reply.setEncoding('utf8')) text += piece;
    return { status: reply.statusCode ?? 0, headers: reply.headers, body: text };
  }

  #count(status: string): void {
    this.books.answers.set(status, (this.books.answers.get(status) ?? 0) + 1);
  }

  #answered(): number {
    return this.books.answers.values().reduce((sum, count) => sum + count, 0);
  }
}
