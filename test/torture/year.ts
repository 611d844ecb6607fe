/**
 * A year of a fleet in minutes: clients that poll once a day like the installer, the real server, the real renewal
 * engine and a fast clock. At the end the records of clients, server and database must match.
 */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { day, hour, minute } from '../../src/base/duration.ts';
import { openVault } from '../../src/cli/runtime/open-vault.ts';
import { findRenewal } from '../../src/db/tables/renewals/renewals.ts';
import { createApiKey, revokeApiKey } from '../../src/domain/access/api-keys.ts';
import { localCli } from '../../src/domain/audit/audit.ts';
import { createCertificate } from '../../src/domain/certificates/certificates.ts';
import { createApiKeyInput, createCertificateInput, parseInput } from '../../src/domain/inputs.ts';
import type { Vault } from '../../src/domain/vault.ts';
import { serverContext } from '../../src/http/server/listener-context.ts';
import { startServer } from '../../src/http/server/server.ts';
import { runChallengeCleaner, runKeyUseWriter, runWindowWatcher } from '../../src/jobs/periodic-jobs.ts';
import { runRenewalScheduler } from '../../src/jobs/renewal-scheduler.ts';
import { runRenewalWorker } from '../../src/jobs/renewal-worker.ts';
import { routes } from '../harness/http/all-routes.ts';
import { settingsFor } from '../harness/test-vault.ts';
import type { Chamber } from './chamber.ts';
import { PollingClient, type RunOutcome } from './polling-client.ts';
import { SimulatedTime } from './simulated-time.ts';
import {
  ClientBook,
  checkBooks,
  lifetime,
  ServerBook,
  type YearFigures,
  type YearPlan,
} from './year-books.ts';

const jobs = [runRenewalWorker, runRenewalScheduler, runWindowWatcher, runChallengeCleaner, runKeyUseWriter];

/** `--clients`, `--certificates`, `--days`. */
export const year: Chamber = async ({ amount, say }) => {
  const days = amount('days') ?? 365;
  const plan = {
    clients: amount('clients') ?? 1000,
    certificates: amount('certificates') ?? 100,
    days,
    longestStep: 4 * minute,
    renewBetweenEvery: 997,
    outages: [0.1, 0.3, 0.6, 0.9].map((part, index) => ({
      day: Math.floor(days * part),
      hours: [1, 5, 30, 50][index] ?? 1,
    })),
    revoked: 10,
  };
  const figures = await simulateYear(plan, say);
  return Object.entries(figures).map(([name, value]) => ({ name: wordsOf(name), value }));
};

/** `notModified` is `not modified`. */
function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

/** Simulates the year and throws if a check fails. Calls `tell` once per simulated month. */
export async function simulateYear(
  plan: YearPlan,
  tell: (line: string) => void = () => undefined,
): Promise<YearFigures> {
  // In memory if possible, because each poll would wait for the disk. Other chambers test durability.
  const dataDir = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'vault-year-'));
  const time = new SimulatedTime('2026-01-01T00:00:00Z');
  const server = new YearServer(dataDir, time);
  const agent = new Agent({ keepAlive: true, maxSockets: 64 });
  try {
    const begun = time.world.now();
    await server.start();
    const books = await equip(plan, server, time, agent);
    const first = begun + day;
    for (const moment of momentsOf(first, plan, books)) {
      await time.until(moment.at, plan.longestStep);
      await happen(moment, plan, server, time, books);
      await time.settle();
      if (moment.kind === 'month' && (moment.at - first) % (30 * day) === 0)
        tell(`day ${(moment.at - first) / day}`);
    }
    await server.end();
    return checkBooks({ dataDir, plan, books, server: server.book, first, moves: time.moves });
  } finally {
    await server.end();
    agent.destroy();
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Creates the certificates and a key for each client. The clients start to poll a day later. */
async function equip(
  plan: YearPlan,
  server: YearServer,
  time: SimulatedTime,
  agent: Agent,
): Promise<ClientBook[]> {
  const { vault } = server.running;
  const begun = time.world.now();
  const operator = await makeKey(vault, 'operator', ['renewals:trigger'], '*');
  const names = Array.from({ length: plan.certificates }, (_, index) => `site-${index}`);
  // Created over a day, so that not all are due in the same minute.
  for (const [index, name] of names.entries()) {
    await time.until(begun + Math.floor((index * day) / names.length), plan.longestStep);
    const input = { name, domains: [`${name}.example.test`], lifetime: `${lifetime / day}d` };
    await createCertificate(vault, localCli, parseInput(createCertificateInput, input));
  }
  let polls = 0;
  const between = async (certificate: string) => {
    polls += 1;
    if (polls % plan.renewBetweenEvery === 0) await server.renew(operator.raw, certificate);
  };
  const books: ClientBook[] = [];
  for (let index = 0; index < plan.clients; index += 1) {
    const certificate = names[index % names.length] ?? '';
    const name = `client-${index}`;
    const key = await makeKey(vault, name, ['certificates:read', 'private_keys:read'], certificate);
    const client = new PollingClient(certificate, key.raw, {
      ...{ agent, between, now: time.world.now, pause: time.pause },
      url: () => server.url,
      seen: (asked, answer) => book.enter(asked, answer),
    });
    // The script's computation with two random bytes.
    const slot = (time.world.randomBytes(2).readUInt16LE() % 1440) * minute;
    const book = new ClientBook(client, slot, key.id, `api-key:${key.id}:${name}`);
    books.push(book);
  }
  return books;
}

async function happen(
  moment: Moment,
  { revoked }: YearPlan,
  server: YearServer,
  time: SimulatedTime,
  books: readonly ClientBook[],
): Promise<void> {
  if (moment.kind === 'down') await server.end();
  if (moment.kind === 'up') await server.start();
  if (moment.kind === 'revoke') {
    for (const book of books.slice(0, revoked)) {
      await revokeApiKey(server.running.vault, localCli, book.keyId);
      book.revokedAt = time.world.now();
    }
  }
  if (moment.kind === 'polls') {
    for (const book of moment.books) time.begin(poll(book, time, server.isDown));
  }
}

async function poll(book: ClientBook, time: SimulatedTime, isDown: boolean): Promise<void> {
  const { client } = book;
  const at = time.world.now();
  book.before(at, isDown);
  const outcome: RunOutcome = await client.run();
  book.after(at, outcome);
}

type Moment =
  | { readonly at: number; readonly kind: 'down' | 'up' | 'revoke' | 'month' }
  | { readonly at: number; readonly kind: 'polls'; readonly books: readonly ClientBook[] };

/** All outside events, in order. */
function* momentsOf(first: number, plan: YearPlan, books: readonly ClientBook[]): Generator<Moment> {
  const bySlot = Map.groupBy(books, ({ slot }) => slot);
  const slots = [...bySlot.keys()].sort((one, other) => one - other);
  const rare: Moment[] = [
    { at: first + Math.floor(plan.days / 2) * day + 30_000, kind: 'revoke' },
    ...plan.outages.flatMap((outage): Moment[] => [
      { at: first + outage.day * day + 15_000, kind: 'down' },
      { at: first + outage.day * day + outage.hours * hour + 15_000, kind: 'up' },
    ]),
  ];
  for (let number = 0; number < plan.days; number += 1) {
    const from = first + number * day;
    const today: Moment[] = slots.map((slot) => ({
      at: from + slot,
      kind: 'polls',
      books: bySlot.get(slot) ?? [],
    }));
    today.push(...rare.filter(({ at }) => at >= from && at < from + day));
    yield { at: from, kind: 'month' };
    yield* today.sort((one, other) => one.at - other.at);
  }
}

async function makeKey(vault: Vault, name: string, scopes: readonly string[], certificate: string) {
  const input = parseInput(createApiKeyInput, { name, scopes: [...scopes], certificates: [certificate] });
  const { id, raw } = await createApiKey(vault, localCli, input);
  return { id, raw: raw.expose() };
}

/** The vault with its server and jobs, which stops and starts several times. */
class YearServer {
  readonly book = new ServerBook();
  readonly #dataDir: string;
  readonly #time: SimulatedTime;
  #running: { readonly vault: Vault; readonly url: string; readonly end: () => Promise<void> } | undefined;

  constructor(dataDir: string, time: SimulatedTime) {
    this.#dataDir = dataDir;
    this.#time = time;
  }

  get isDown(): boolean {
    return this.#running === undefined;
  }

  get running() {
    if (this.#running === undefined) throw new Error('the server is down');
    return this.#running;
  }

  /** An address where nothing listens, for outages. */
  get url(): string {
    return this.#running?.url ?? 'http://127.0.0.1:1';
  }

  async start(): Promise<void> {
    const { log } = this.book;
    const { vault, close } = await openVault(settingsFor(this.#dataDir), this.#time.world, 'create', log);
    const context = serverContext(vault, { version: '0.0.0-year', publicUrl: undefined });
    const { url, stop } = await startServer(context, routes, { host: '127.0.0.1', port: 0 });
    const stopping = new AbortController();
    const working = jobs.map((job) => job(vault, stopping.signal));
    this.#time.attend(join(this.#dataDir, 'vault.db'), jobs.length);
    const end = async () => {
      this.#time.leave();
      stopping.abort();
      await stop(0);
      await Promise.all(working);
      await close();
    };
    this.#running = { vault, url, end };
  }

  async end(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.end();
  }

  /** Requests a renewal over HTTP and waits for the new version. */
  async renew(key: string, certificate: string): Promise<void> {
    const { vault, url } = this.running;
    const asked = await fetch(new URL(`/api/v1/certificates/${certificate}/renew`, url), {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
    });
    const { id } = (await asked.json()) as { id: number };
    this.book.asked.add(id);
    for (let status = ''; status !== 'succeeded'; ) {
      await vault.world.turn();
      status = (await findRenewal(vault.db.reader, id))?.status ?? 'gone';
      if (status === 'failed' || status === 'gone') throw new Error(`the renewal ${id} has ${status}`);
    }
  }
}
