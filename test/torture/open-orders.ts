/**
 * Hostile ACME clients that hold as many open orders as they may: large ones, some of which they fail, with many
 * requests at a time, far beyond their limits, and on connections whose bodies never end. Meanwhile an honest client
 * must get its certificates, no response may be an error of the server, and its memory and tables must stay bounded.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import {
  type AcmeAnswer,
  AcmeTestClient,
  assertProblem,
  csrFor,
  type ExternalAccount,
} from '../harness/acme/server-client.ts';
import type { Chance, Finding, Order } from './chamber.ts';
import { memoryBound } from './connection-crowd.ts';
import { limitMemory } from './memory-group.ts';
import { type Place, runCommand, startServer } from './running-vault.ts';

/** What the vault permits each client. */
const ordersOfClient = 1000;
const accountsOfClient = 2;
/** Of each client, at a time. */
const requestsAtOnce = 24;
const slowConnections = 100;
/** Of all clients. */
const refusalsAfterwards = 200;
/** Refusals of a client in the audit log, at most: those that are recorded in full each hour, and counts of others. */
const eventsOfClient = 110;

export type OpenOrdersFacts = {
  /** Orders that hostile clients hold, of which some failed. */
  readonly held: number;
  readonly failed: number;
  readonly refused: number;
  /** Connections with an endless body. */
  readonly slow: number;
  /** Orders of the honest client to the certificate, and their longest, in milliseconds. */
  readonly honest: number;
  readonly longest: number;
  /** Peak memory in MB, and the size of the database at the end. */
  readonly memory: number;
  readonly database: number;
  /** How often the kernel killed it for its memory, or why it was not limited. */
  readonly kills: number | string;
};

/** `--orders` (10,000) of as many clients as they take. */
export async function openOrders(order: Order): Promise<readonly Finding[]> {
  const clients = Math.ceil((order.amount('orders') ?? 10_000) / ordersOfClient);
  const facts = await holdOrders(order, { clients, copied: 0 });
  order.say(JSON.stringify(facts));
  return [
    { name: 'orders that hostile clients held', value: facts.held },
    { name: 'of these failed', value: facts.failed },
    { name: 'orders refused', value: facts.refused },
    { name: 'connections with endless bodies', value: facts.slow },
    { name: 'certificates of the honest client', value: facts.honest },
    { name: 'the longest of its orders', value: facts.longest, unit: 'ms' },
    { name: 'most memory', value: facts.memory, unit: 'MB' },
    { name: 'database', value: facts.database, unit: 'MB' },
  ];
}

/**
 * Lets this many hostile clients order until none may. So many orders of each are not requested but copied. Throws if
 * the vault breaks a promise.
 */
export async function holdOrders(
  { program, folder, chance, say }: Order,
  { clients, copied }: { readonly clients: number; readonly copied: number },
): Promise<OpenOrdersFacts> {
  const place = { program, data: join(folder, 'data'), environment: {} };
  const honest = await createClient(place, 'honest', []);
  const bindings: ExternalAccount[] = [];
  // Their names are validated, so that an order stays open.
  for (let at = 0; at < clients; at += 1)
    bindings.push(await createClient(place, `hostile-${at}`, ['--validate', 'http-01,dns-01']));
  const { listening, kill } = startServer(place);
  const server = await listening;
  assert.ok(server !== undefined);
  const group = limitMemory(server.pid, groupLimit);
  let memory = 0;
  const looking = setInterval(() => {
    const status = readFileSync(`/proc/${server.pid}/status`, 'utf8');
    memory = Math.max(memory, Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
  }, 50);
  const stop = new AbortController();
  const slow = endlessBodies(server.url, stop.signal);
  const served = orderInLoop(server.url, honest, stop.signal);
  try {
    const accounts = await Promise.all(
      bindings.flatMap((binding) =>
        Array.from({ length: accountsOfClient }, () => AcmeTestClient.registered(server.url, binding)),
      ),
    );
    if (copied > 0) await copyOrders(place, accounts, copied);
    const hold = (account: AcmeTestClient, at: number) => fill(account, chance.child(String(at)));
    const refusals = await Promise.all(accounts.map(hold));
    say('no client may order any more');
    const more = await Promise.all(
      accounts.map((account) => insist(account, Math.ceil(refusalsAfterwards / accounts.length))),
    );
    stop.abort();
    const times = await served;
    assert.ok(times.length > 0, 'the honest client got no certificate');
    const kills = 'kills' in group ? group.kills() : group.reason;
    assert.ok(kills === 0 || typeof kills === 'string', 'killed for its memory');
    assert.ok(memory > 50 && memory < memoryBound, `${memory} MB`);
    clearInterval(looking);
    await kill('SIGTERM');
    return {
      ...rowsOf(place, { clients, honest: times.length }),
      refused: [...refusals, ...more].reduce((sum, count) => sum + count, 0),
      ...{ slow: slow(), honest: times.length, longest: Math.max(...times), memory, kills },
    };
  } finally {
    stop.abort();
    clearInterval(looking);
    await Promise.allSettled([served, kill()]);
    if ('remove' in group) group.remove();
  }
}

/** In bytes, half of what the systemd unit allows. */
const groupLimit = 2 ** 30;

async function createClient(place: Place, name: string, more: readonly string[]): Promise<ExternalAccount> {
  const options = ['--name', name, '--domain', '*.example.test', '--json', ...more];
  const { code, stdout, stderr } = await runCommand(place, ['acme-client', 'create', ...options]);
  assert.equal(code, 0, stderr);
  const { kid, hmac_key } = JSON.parse(stdout);
  return { kid, hmacKey: Buffer.from(hmac_key, 'base64url') };
}

/** Has each client order once, and copies that order this often. */
async function copyOrders(
  { data }: Place,
  accounts: readonly AcmeTestClient[],
  count: number,
): Promise<void> {
  for (const account of accounts.filter((_, at) => at % accountsOfClient === 0))
    assert.equal((await account.order(['copied.example.test'])).status, 201);
  const db = new BetterSqlite3(join(data, 'vault.db'), { timeout: 60_000 });
  const columns = 'acme_client_id, account_id, status, identifiers, authorizations, created_at, expires_at';
  db.exec(`with recursive copies (n) as (select 1 union all select n + 1 from copies where n < ${count})
    insert into acme_client_orders (${columns}) select ${columns} from acme_client_orders, copies
    where status = 'pending'`);
  db.close();
}

/** Orders and fails orders until the client may not; returns how many were refused. */
async function fill(account: AcmeTestClient, chance: Chance): Promise<number> {
  let refused = 0;
  await Promise.all(
    Array.from({ length: requestsAtOnce / accountsOfClient }, async () => {
      for (;;) {
        const ordered = await account.order(namesOf(chance));
        if (ordered.status === 201) await play(account, ordered, chance);
        else {
          refused += 1;
          return assertLimited(ordered);
        }
      }
    }),
  );
  return refused;
}

/** One name, or in a twentieth of the orders a hundred long ones. */
function namesOf(chance: Chance): string[] {
  if (!chance.happens(0.05)) return [`host-${chance.whole(0, 999)}.example.test`];
  const label = 'x'.repeat(60);
  return Array.from({ length: 100 }, (_, at) => `${label}.${label}.host-${at}.example.test`);
}

/** Does with an open order what is no use: reads it, finalizes it although it is not ready, or fails it. */
async function play(account: AcmeTestClient, ordered: AcmeAnswer, chance: Chance): Promise<void> {
  const [authorization] = ordered.json.authorizations as string[];
  const kind = chance.fraction();
  if (kind < 0.05) {
    const failed = await account.post(authorization ?? '', { status: 'deactivated' });
    assert.equal(failed.status, 200, failed.text);
  } else if (kind < 0.1) {
    const csr = await csrFor(['other.example.test']);
    assertProblem(await account.post(ordered.json.finalize, { csr }), 'orderNotReady', 403);
  } else if (kind < 0.15) {
    const listed = await account.post(`${account.account}/orders`);
    assert.equal(listed.status, 200, listed.text);
  }
}

/** Orders this often although it may not, with all requests at a time. */
async function insist(account: AcmeTestClient, times: number): Promise<number> {
  const answers = await Promise.all(
    Array.from({ length: times }, (_, at) => account.order([`more-${at}.example.test`])),
  );
  for (const answer of answers) assertLimited(answer);
  return answers.length;
}

function assertLimited(answer: AcmeAnswer): void {
  const detail = assertProblem(answer, 'rateLimited', 429);
  assert.match(detail, /orders that are not finished/);
  assert.ok(Number(answer.headers.get('Retry-After')) > 0);
}

/** An honest client that orders all the time. Resolves to the milliseconds that each of its orders took. */
async function orderInLoop(url: string, binding: ExternalAccount, signal: AbortSignal): Promise<number[]> {
  const times: number[] = [];
  const client = await AcmeTestClient.registered(url, binding);
  do {
    const began = performance.now();
    const { pem } = await client.issue([`honest-${times.length}.example.test`]);
    assert.match(pem, /^-----BEGIN CERTIFICATE-----/);
    times.push(performance.now() - began);
    await delay(20);
  } while (!signal.aborted);
  return times;
}

/** Keeps connections open whose requests arrive byte by byte and never end. Returns how many there have been. */
function endlessBodies(url: string, signal: AbortSignal): () => number {
  const { hostname, port, host } = new URL(url);
  const head = `POST /acme/local-ca/new-order HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/jose+json\r\nContent-Length: 60000\r\n\r\n{`;
  let opened = 0;
  const keep = async (): Promise<void> => {
    while (!signal.aborted) {
      const socket = connect({ host: hostname, port: Number(port) });
      opened += 1;
      const drip = setInterval(() => socket.writable && socket.write('"'), 1000);
      const leave = () => socket.destroy();
      signal.addEventListener('abort', leave);
      socket.resume().write(head);
      await closed(socket);
      signal.removeEventListener('abort', leave);
      clearInterval(drip);
    }
  };
  for (let count = 0; count < slowConnections; count += 1) void keep();
  return () => opened;
}

/** Resolves when the server has cut the connection, or it was destroyed. */
async function closed(socket: Socket): Promise<void> {
  socket.on('error', () => socket.destroy());
  await once(socket, 'close');
}

/** What is stored at the end. Throws if it is more than the limits permit, or a certificate is missing. */
function rowsOf(
  { data }: Place,
  { clients, honest }: { readonly clients: number; readonly honest: number },
): Pick<OpenOrdersFacts, 'held' | 'failed' | 'database'> {
  const file = join(data, 'vault.db');
  const db = new BetterSqlite3(file, { readonly: true });
  try {
    const count = (sql: string) => Number(db.prepare(`select count(*) from ${sql}`).pluck().get());
    const each = db
      .prepare("select count(*) from acme_client_orders where status <> 'valid' group by acme_client_id")
      .pluck()
      .all();
    assert.deepEqual(
      each,
      Array.from({ length: clients }, () => ordersOfClient),
    );
    assert.equal(count("acme_client_orders where status = 'valid'"), honest);
    assert.equal(count('certificate_versions'), honest);
    const refusals = count("audit_events where action = 'access.refuse'");
    assert.ok(refusals <= clients * eventsOfClient, `${refusals} audit events of refusals`);
    return {
      held: clients * ordersOfClient,
      failed: count("acme_client_orders where status = 'invalid'"),
      database: statSync(file).size / 2 ** 20,
    };
  } finally {
    db.close();
  }
}
