/**
 * A mixed load at half of the maximum rate for half an hour: memory, descriptors, log size and response times must be
 * flat, and at the end the audit log must match all responses.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import BetterSqlite3 from 'better-sqlite3';
import type { Chamber, Finding, Order } from './chamber.ts';
import { type Place, type Ran, runCommand, startServer } from './running-vault.ts';
import { administrator, type Books, SoakLoad } from './soak-load.ts';
import { type Allowance, isFlat, type Sample, trendOf } from './soak-trend.ts';

/** The watched values, their units, and the allowed rise over the second part of the run. */
const watched: Readonly<Record<string, { readonly unit: string; readonly allowed: Allowance }>> = {
  memory: { unit: 'MB', allowed: { share: 0.05, least: 8 } },
  descriptors: { unit: '', allowed: { share: 0.1, least: 4 } },
  'write-ahead log': { unit: 'MB', allowed: { share: 0.25, least: 4 } },
  delay: { unit: 'ms', allowed: { share: 0.5, least: 3 } },
};

export type Soaked = {
  readonly rows: ReadonlyMap<string, readonly Sample[]>;
  readonly books: Books;
  readonly rate: number;
};

const certificates = ['web', 'mail', 'db'];

/** `--minutes` is the duration. */
export const soak: Chamber = async (order) => {
  const { rows, books, rate } = await soakFor(order, (order.amount('minutes') ?? 30) * 60_000, 5000);
  const findings: Finding[] = [{ name: 'requests a second, half of what it can do', value: rate }];
  const rising: string[] = [];
  for (const [name, samples] of rows) {
    const { unit = '', allowed = { share: 0, least: 0 } } = watched[name] ?? {};
    const trend = trendOf(samples);
    findings.push({ name: `${name}, mean`, value: trend.mean, unit });
    findings.push({ name: `${name}, rise in the second part`, value: trend.rise, unit });
    if (!isFlat(trend, allowed)) rising.push(`${name} rises by ${trend.perHour.toFixed(1)} ${unit} an hour`);
  }
  for (const [name, value] of Object.entries(books)) {
    if (typeof value === 'number') findings.push({ name, value });
  }
  assert.deepEqual(rising, []);
  return findings;
};

/** Runs the load with a sample every `every` milliseconds, checks the records, and returns the measurements. */
export async function soakFor(
  { program, folder, say }: Pick<Order, 'program' | 'folder' | 'say'>,
  ms: number,
  every: number,
): Promise<Soaked> {
  const place: Place = { program, data: join(folder, 'data'), environment: {} };
  const key = await prepare(place);
  const started = startServer(place, ['--tls-certificate', 'vault']);
  let load: SoakLoad | undefined;
  try {
    const server = await started.listening;
    if (server === undefined) throw new Error('it was killed');
    const { url, pid } = server;
    load = new SoakLoad(url, key, certificates);
    const rate = (await load.capacity(Math.min(10_000, ms / 5))) / 2;
    say(`${rate.toFixed(0)} requests per second are half of the maximum rate here`);
    const running = load.run(rate);
    const rows = await Promise.race([
      measure(pid, place.data, url, ms, every, say),
      running.then(() => undefined),
    ]);
    load.leave();
    await running;
    assert(rows);
    assert.equal(started.log(), '', 'errors in the log of the server');
    await started.kill('SIGTERM');
    checkBooks(place.data, load.books);
    return { rows, books: load.books, rate };
  } catch (error) {
    say(`the server said: ${started.log().slice(-4000)}`);
    throw error;
  } finally {
    load?.leave();
    load?.close();
    await started.kill();
  }
}

async function prepare(place: Place): Promise<string> {
  const done = ({ code, stdout, stderr }: Ran) => {
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  for (const name of certificates) {
    done(await runCommand(place, ['certificate', 'create', '--name', name, '--domain', `${name}.test`]));
  }
  const person = ['admin', 'create', '--name', administrator.name, '--password-stdin'];
  done(await runCommand(place, person, { input: administrator.password }));
  const scopes = ['certificates:read', 'private_keys:read', 'renewals:trigger'];
  const rights = [...scopes.flatMap((scope) => ['--scope', scope]), '--certificate', '*'];
  return done(await runCommand(place, ['api-key', 'create', '--name', 'fleet', ...rights]));
}

async function measure(
  pid: number,
  data: string,
  url: string,
  ms: number,
  every: number,
  say: (line: string) => void,
): Promise<ReadonlyMap<string, readonly Sample[]>> {
  const rows = new Map<string, Sample[]>(Object.keys(watched).map((name) => [name, []]));
  const began = performance.now();
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  try {
    for (let at = every; at <= ms; at += every) {
      const memory = await leastMemory(pid, began + at);
      const now: Record<string, number> = {
        memory,
        descriptors: readdirSync(`/proc/${pid}/fd`).length,
        'write-ahead log': statSync(join(data, 'vault.db-wal')).size / 2 ** 20,
        delay: await delayOf(agent, url),
      };
      for (const [name, row] of rows)
        row.push({ at: (performance.now() - began) / 1000, value: now[name] ?? 0 });
      if ((at / every) % 12 === 0) say(JSON.stringify(now));
    }
    return rows;
  } finally {
    agent.destroy();
  }
}

/** The minimum of an interval, which excludes short peaks such as sign-ins and uncollected garbage. */
async function leastMemory(pid: number, until: number): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  do {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8');
    least = Math.min(least, Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) / 1024);
    await delay(Math.min(200, Math.max(0, until - performance.now())));
  } while (performance.now() < until);
  return least;
}

/** The median of nine trivial requests, which measures the delay of the event loop. */
async function delayOf(agent: Agent, url: string): Promise<number> {
  const times: number[] = [];
  for (let count = 0; count < 9; count += 1) {
    const began = performance.now();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    request(`${url}/api/v1/health`, { agent }, (reply) => reply.resume().on('end', resolve))
      .on('error', reject)
      .end();
    await promise;
    times.push(performance.now() - began);
  }
  return times.sort((one, other) => one - other)[4] ?? 0;
}

/** Checks that the audit log matches all responses, and the integrity of the database. */
function checkBooks(data: string, books: Books): void {
  const db = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok');
    const count = (action: string, others = '') =>
      db.prepare(`select count(*) from audit_events where action = ? ${others}`).pluck().get(action);
    assert.deepEqual(
      {
        downloads: count('certificate.download'),
        signIns: count('session.create'),
        signOuts: count('session.end'),
        keysMade: count('api_key.create', "and actor like 'admin:%'"),
        keysDeleted: count('api_key.delete'),
        revokedRefused: count('access.refuse', `and detail like '%"reason":"revoked"%'`),
        renewalsAsked: count('renewal.request'),
      },
      {
        downloads: books.downloads,
        signIns: books.signIns,
        signOuts: books.signOuts,
        keysMade: books.keysMade,
        keysDeleted: books.keysDeleted,
        revokedRefused: books.revokedRefused,
        renewalsAsked: books.renewalsAsked,
      },
    );
    const renewed = db.prepare("select count(*) from renewals where status = 'succeeded'").pluck().get();
    assert.equal(renewed, books.renewalsAsked, 'a requested renewal did not succeed');
    assert.equal(db.prepare('select count(*) from sessions').pluck().get(), 0, 'a session is left');
  } finally {
    db.close();
  }
}
