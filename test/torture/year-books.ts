/**
 * The books of a simulated year: what the clients got, what the server's log says that it answered, and what stands in the
 * database. Each was kept without looking at the others; here they are compared, entry by entry.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { day, hour, minute, second } from '../../src/base/duration.ts';
import { type Log, type LogFields, silentLog } from '../../src/base/log.ts';
import type { Answer, Asked, PollingClient, RunOutcome } from './polling-client.ts';

export const lifetime = 45 * day;
/** How far from its end a certificate is renewed, at the latest. */
export const renewalLead = lifetime / 3;
/** The earliest moment differs from the latest by this jitter. */
const jitter = lifetime / 50;
export const pollPeriod = day;
/** The scheduler looks once a minute, and a renewal takes a moment. */
const slack = 2 * minute;

export type YearPlan = {
  readonly clients: number;
  readonly certificates: number;
  readonly days: number;
  /** The clock is never moved by more than this at once. */
  readonly longestStep: number;
  /** After every so-manieth first file, the certificate is renewed before the second is asked for. */
  readonly renewBetweenEvery: number;
  /** When the server is down, and for how long. */
  readonly outages: readonly { readonly day: number; readonly hours: number }[];
  /** So many clients' keys are revoked in the middle of the year; they go on polling. */
  readonly revoked: number;
};

export type YearFigures = {
  readonly polls: number;
  readonly downloads: number;
  readonly notModified: number;
  readonly refused: number;
  readonly failedRuns: number;
  readonly retries: number;
  readonly versions: number;
  readonly renewals: number;
  readonly renewalsBetweenTwoFiles: number;
  readonly auditEvents: number;
  /** The least that any client ever had left of its certificate's life, in days. */
  readonly leastDaysLeft: number;
  readonly clockMoves: number;
};

/** What the server's log says, counted as it comes. */
export class ServerBook {
  /** How often each status was answered on the routes of artifacts. */
  readonly statuses = new Map<number, number>();
  /** Renewals that somebody asked for. */
  readonly asked = new Set<number>();
  readonly complaints: string[] = [];
  readonly log: Log = this.#logWith({});

  #logWith(common: LogFields): Log {
    return {
      ...silentLog,
      info: (fields, message) => {
        const { route, status } = { ...common, ...fields };
        if (message !== 'request' || !/\/(fullchain\.crt|private\.key)$/.test(String(route))) return;
        this.statuses.set(Number(status), (this.statuses.get(Number(status)) ?? 0) + 1);
      },
      warn: ({ err }, message) => {
        // It is stopped without patience, and connections are kept alive.
        if (message !== 'closed connections with requests in flight')
          this.complaints.push(`${message} ${err}`);
      },
      error: ({ err }, message) => this.complaints.push(`${message} ${err}`),
      with: (fields) => this.#logWith({ ...common, ...fields }),
    };
  }
}

/** What one client asked and got. */
export class ClientBook {
  readonly client: PollingClient;
  /** When it polls, in milliseconds of the day. */
  readonly slot: number;
  readonly keyId: number;
  readonly actor: string;
  revokedAt: number | undefined;
  readonly statuses = new Map<number, number>();
  /** What came with 200, by `artifact version`. */
  readonly received = new Map<string, number>();
  /** When it polled with success, and the version it had then. */
  readonly held: { readonly at: number; readonly version: number }[] = [];
  failedRuns = 0;
  leastLeft = Number.POSITIVE_INFINITY;
  #missed = 0;
  #isDown = false;

  constructor(client: PollingClient, slot: number, keyId: number, actor: string) {
    this.client = client;
    this.slot = slot;
    this.keyId = keyId;
    this.actor = actor;
  }

  enter({ path, ifNoneMatch }: Asked, { status, headers, body }: Answer): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status === 304) {
      assert.equal(body, '');
      assert.equal(headers.etag, ifNoneMatch, 'a 304 for another entity tag');
    }
    if (status !== 200) return;
    assert.notEqual(headers.etag, ifNoneMatch, 'a 200 though nothing has changed');
    const artifact = new URL(path, 'http://client').pathname.split('/').at(-1);
    const what = `${artifact} ${headers['certificate-version']}`;
    this.received.set(what, (this.received.get(what) ?? 0) + 1);
  }

  /** What the client holds has been served by its machine until now: it must have been good for all that time. */
  before(at: number, isDown: boolean): void {
    this.#isDown = isDown;
    const pair = this.client.pair;
    if (pair === undefined || this.revokedAt !== undefined) return;
    const left = pair.notAfter - at;
    this.leastLeft = Math.min(this.leastLeft, left);
    const least = renewalLead - pollPeriod * (1 + this.#missed) - slack;
    assert.ok(left >= least, `${this.actor}: ${left / hour} h are left after ${this.#missed} missed polls`);
  }

  after(at: number, outcome: RunOutcome): void {
    if (outcome.kind === 'check') assert.fail(`${this.actor}: refused what came: ${outcome.reason}`);
    if (outcome.kind === 'fetch') {
      const mayFail = this.#isDown ? '0' : this.revokedAt === undefined ? undefined : '401';
      assert.equal(outcome.reason, mayFail, `${this.actor}: a run failed`);
      this.failedRuns += 1;
      this.#missed += 1;
      return;
    }
    assert.equal(this.#isDown, false);
    assert.equal(this.revokedAt, undefined, `${this.actor}: a revoked key worked`);
    this.#missed = 0;
    this.held.push({ at, version: outcome.version });
  }
}

type VersionRow = {
  readonly certificate: string;
  readonly version: number;
  readonly created_at: number;
  readonly not_before: number;
  readonly not_after: number;
};

export type Year = {
  readonly dataDir: string;
  readonly plan: YearPlan;
  readonly books: readonly ClientBook[];
  readonly server: ServerBook;
  /** When the clients began. */
  readonly first: number;
  readonly moves: number;
};

/** Throws where the books disagree; the database is read from outside, when the server has ended. */
export function checkBooks({ dataDir, plan, books, server, first, moves }: Year): YearFigures {
  const db = new BetterSqlite3(join(dataDir, 'vault.db'), { readonly: true });
  try {
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok');
    const versions = db
      .prepare<[], VersionRow>(
        `select c.name as certificate, v.version, v.created_at, v.not_before, v.not_after
           from certificate_versions v join certificates c on c.id = v.certificate_id order by c.id, v.version`,
      )
      .all();
    const renewals = checkRenewals(db, versions, plan, server, first);
    checkHeld(versions, books);
    const statuses = sumOf(books.map(({ statuses }) => statuses));
    checkAnswers(db, books, server, statuses);
    const downloads = statuses.get(200) ?? 0;
    const refused = statuses.get(401) ?? 0;
    const auditEvents = checkAudit(db, { plan, downloads, refused, renewals, versions: versions.length });
    assert.deepEqual(server.complaints, []);
    const polls = plan.clients * plan.days;
    const failedRuns = sum(books.map(({ failedRuns }) => failedRuns));
    assert.equal(sum(books.map(({ held }) => held.length)) + failedRuns, polls);
    return {
      ...{ polls, downloads, notModified: statuses.get(304) ?? 0, refused, failedRuns },
      retries: statuses.get(0) ?? 0,
      ...{ versions: versions.length, renewals, renewalsBetweenTwoFiles: server.asked.size, auditEvents },
      leastDaysLeft: Math.min(...books.map(({ leastLeft }) => leastLeft)) / day,
      clockMoves: moves,
    };
  } finally {
    db.close();
  }
}

/** Every renewal has succeeded, made exactly one version, and was asked for or due; and none is missing. */
function checkRenewals(
  db: BetterSqlite3.Database,
  versions: readonly VersionRow[],
  { certificates, days, outages }: YearPlan,
  { asked }: ServerBook,
  first: number,
): number {
  type Row = {
    id: number;
    name: string;
    status: string;
    version: number;
    requested_at: number;
    requested_by: string;
  };
  const rows = db
    .prepare<[], Row>(
      `select r.id, c.name, r.status, r.version, r.requested_at, r.requested_by
         from renewals r join certificates c on c.id = r.certificate_id order by r.id`,
    )
    .all();
  assert.deepEqual([...new Set(rows.map(({ status }) => status))], ['succeeded']);
  assert.equal(versions.length, certificates + rows.length, 'each renewal made one version');
  const made = new Map(rows.map((row) => [`${row.name} ${row.version}`, row]));
  assert.equal(made.size, rows.length);
  const byHand = rows.filter(({ requested_by }) => requested_by !== 'system').map(({ id }) => id);
  assert.deepEqual(
    byHand.filter((id) => !asked.has(id)),
    [],
    'somebody unknown asked for a renewal',
  );
  const ends = outages.map((outage) => first + outage.day * day + outage.hours * hour);
  const over = first + days * day;
  for (const [index, current] of versions.entries()) {
    assert.equal(current.not_after - current.not_before, lifetime);
    const latest = current.not_after - renewalLead;
    const next = versions[index + 1];
    if (next?.certificate !== current.certificate) {
      assert.ok(latest + slack > over, `${current.certificate} was not renewed when it was due`);
      continue;
    }
    assert.equal(next.version, current.version + 1);
    const renewal = made.get(`${next.certificate} ${next.version}`);
    assert(renewal);
    if (renewal.requested_by !== 'system') continue;
    assert.ok(renewal.requested_at >= latest - jitter - second, 'a renewal came too early');
    const wasHeldUp = ends.some((end) => Math.abs(renewal.requested_at - end) < slack);
    assert.ok(renewal.requested_at <= latest + slack || wasHeldUp, 'a renewal came too late');
    assert.ok(next.created_at - renewal.requested_at <= slack, 'a renewal took too long');
  }
  return rows.length;
}

/** Whoever polls has the newest version that was there when the poll began, or one that came meanwhile. */
function checkHeld(versions: readonly VersionRow[], books: readonly ClientBook[]): void {
  const byName = Map.groupBy(versions, ({ certificate }) => certificate);
  for (const { client, held, actor } of books) {
    const all = byName.get(client.certificate) ?? [];
    let newest = 0;
    for (const { at, version } of held) {
      while ((all[newest]?.created_at ?? Number.POSITIVE_INFINITY) < at) newest += 1;
      assert.ok(version >= (all[newest - 1]?.version ?? 1), `${actor} has version ${version} at ${at}`);
      assert.ok(
        (all[version - 1]?.created_at ?? Number.POSITIVE_INFINITY) <= at + slack,
        'a version before it was made',
      );
    }
  }
}

/** What clients got is what the server's log says and, for each client and file, what the audit log says. */
function checkAnswers(
  db: BetterSqlite3.Database,
  books: readonly ClientBook[],
  server: ServerBook,
  statuses: ReadonlyMap<number, number>,
): void {
  const answered = [...statuses].filter(([status]) => status !== 0);
  assert.deepEqual(Object.fromEntries(answered), Object.fromEntries(server.statuses));
  type Row = { actor: string; what: string; count: number };
  const recorded = db
    .prepare<[], Row>(
      `select actor, (detail ->> 'artifact') || ' ' || (detail ->> 'version') as what, count(*) as count
         from audit_events where action = 'certificate.download' group by 1, 2`,
    )
    .all();
  const byActor = Map.groupBy(recorded, ({ actor }) => actor);
  assert.deepEqual([...byActor.keys()].sort(), books.map(({ actor }) => actor).sort());
  for (const { actor, received } of books) {
    const rows = byActor.get(actor)?.map(({ what, count }) => [what, count] as const) ?? [];
    assert.deepEqual(Object.fromEntries(rows), Object.fromEntries(received), actor);
  }
}

/** The audit log has exactly these events and no other; returns how many. */
function checkAudit(
  db: BetterSqlite3.Database,
  counts: { plan: YearPlan; downloads: number; refused: number; renewals: number; versions: number },
): number {
  const { plan, downloads, refused, renewals } = counts;
  const rows = db
    .prepare<[], { action: string; count: number }>(
      'select action, count(*) as count from audit_events group by 1',
    )
    .all();
  const recorded = Object.fromEntries(rows.map(({ action, count }) => [action, count]));
  assert.deepEqual(recorded, {
    'issuer.create': 1,
    'certificate.create': plan.certificates,
    'certificate.issue': counts.versions,
    'api_key.create': plan.clients + 1,
    ...(plan.revoked > 0 && { 'api_key.revoke': plan.revoked, 'access.refuse': refused }),
    'renewal.request': renewals,
    'certificate.download': downloads,
  });
  return sum(Object.values(recorded));
}

function sumOf(counts: readonly ReadonlyMap<number, number>[]): Map<number, number> {
  const all = new Map<number, number>();
  for (const [key, count] of counts.flatMap((each) => [...each])) all.set(key, (all.get(key) ?? 0) + count);
  return all;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
