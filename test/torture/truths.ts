/**
 * Checks that a vault matches every response it gave and has no incomplete objects, with the database file and a server
 * on it. Uncertain states are accepted as found.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import type { Download, Facts, KeyState, Presence } from './ledger.ts';
import { ask, untilReady } from './running-vault.ts';

/** Remembers what was checked, so that repeated checks stay fast. */
export class Truths {
  #downloads = 0;
  #events = 0;
  readonly #pairs = new Set<string>();
  readonly #settled = new Set<string>();
  readonly #agent = new Agent({ keepAlive: true });
  /** The number of comparisons with responses. */
  compared = 0;
  /** Requests without a response, and how many of them were found done. */
  readonly doubts = { done: 0, undone: 0 };

  /**
   * Runs all checks on the database and returns the broken promises. With `settle`, an uncertain state becomes certain
   * as found, for a vault that continues to run.
   */
  ofDatabase(data: string, facts: Facts, { settle }: { readonly settle: boolean }): string[] {
    const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
    try {
      const broken: string[] = [];
      const expect = (holds: boolean, sentence: string) => {
        this.compared += 1;
        if (!holds) broken.push(sentence);
      };
      expect(database.pragma('integrity_check', { simple: true }) === 'ok', 'integrity_check finds damage');
      expect(database.prepare('pragma foreign_key_check').get() === undefined, 'rows violate foreign keys');
      this.#recorded(database, facts, expect);
      this.#keys(database, facts, expect, settle);
      this.#certificates(database, facts, expect, settle);
      nothingHalfMade(database, expect);
      return broken;
    } finally {
      database.close();
    }
  }

  /** Runs the checks that need a server: authentication, and that private keys decrypt and match their chains. */
  async ofServer(url: string, facts: Facts, { everything }: { readonly everything: boolean }) {
    const broken: string[] = [];
    const get = (path: string, headers: Record<string, string>) =>
      ask(url + path, { headers, agent: this.#agent });
    const expect = (holds: boolean, sentence: string) => {
      this.compared += 1;
      if (!holds) broken.push(sentence);
    };
    await untilReady(url);
    for (const [name, { may, raw, certificate }] of facts.keys) {
      const [state] = may;
      const seen = `${name} ${state}`;
      if (raw === undefined || may.size !== 1 || (!everything && this.#settled.has(seen))) continue;
      const { status } = await get(`/api/v1/certificates/${certificate}`, { Authorization: `Bearer ${raw}` });
      const isRight = state === 'active' ? status === 200 : status === 401 || status === 429;
      expect(isRight, `${name} is ${state} and gets ${status}`);
      this.#settled.add(seen);
    }
    for (const [name, { may, cookie }] of facts.sessions) {
      const [state] = may;
      const seen = `${name} ${state}`;
      if (cookie === undefined || may.size !== 1 || (!everything && this.#settled.has(seen))) continue;
      const { status } = await get('/api/v1/session', { Cookie: cookie });
      expect(status === (state === 'present' ? 200 : 401), `${name} is ${state} and gets ${status}`);
      this.#settled.add(seen);
    }
    const all = facts.keys.get('all')?.raw;
    // It is created last in a new vault.
    if (all === undefined) return broken;
    const bearer = { Authorization: `Bearer ${all}` };
    const listed = await get('/api/v1/certificates', bearer);
    for (const { name } of JSON.parse(listed.body) as { name: string }[]) {
      const versions = await get(`/api/v1/certificates/${name}/versions`, bearer);
      for (const { version, fingerprint_sha256 } of JSON.parse(versions.body) as VersionView[]) {
        const seen = `${name} ${version} ${fingerprint_sha256}`;
        if (!everything && this.#pairs.has(seen)) continue;
        const path = `/api/v1/certificates/${name}`;
        const [chain, key] = [
          await get(`${path}/fullchain.crt?version=${version}`, bearer),
          await get(`${path}/private.key?version=${version}`, bearer),
        ];
        const isPair =
          chain.status === 200 &&
          key.status === 200 &&
          new X509Certificate(chain.body).checkPrivateKey(createPrivateKey(key.body));
        expect(isPair, `version ${version} of ${name} is no pair: ${chain.status}, ${key.status}`);
        this.#pairs.add(seen);
      }
    }
    return broken;
  }

  /** Makes the next check complete. */
  forget(): void {
    this.#downloads = 0;
    this.#events = 0;
  }

  #recorded(database: BetterSqlite3.Database, { downloads }: Facts, expect: Expect): void {
    const sql =
      "select id, request_id, resource, detail from audit_events where action = 'certificate.download' and id > ?";
    const events = new Map<string, { id: number; resource: string; detail: string; count: number }>();
    let last = this.#events;
    for (const row of database.prepare<[number], EventRow>(sql).iterate(this.#events)) {
      events.set(row.request_id, { ...row, count: (events.get(row.request_id)?.count ?? 0) + 1 });
      last = row.id;
    }
    for (const download of downloads.slice(this.#downloads)) {
      const event = events.get(download.requestId);
      const isSo = event?.count === 1 && tellsOf(event, download);
      expect(isSo, `a successful download is not recorded exactly once: ${JSON.stringify(download)}`);
    }
    this.#downloads = downloads.length;
    this.#events = last;
  }

  #keys(database: BetterSqlite3.Database, { keys }: Facts, expect: Expect, settle: boolean): void {
    const rows = database
      .prepare<[], { id: number; name: string; revoked_at: number | null }>('select * from api_keys')
      .all();
    for (const { name } of rows) expect(keys.has(name), `the key ${name} was never requested`);
    const found = new Map(
      rows.map(({ name, revoked_at }) => [name, revoked_at === null ? 'active' : 'revoked']),
    );
    for (const [name, key] of keys) {
      const state = (found.get(name) ?? 'absent') as KeyState;
      expect(key.may.has(state), `${name} is ${state} but can only be ${[...key.may].join(' or ')}`);
      this.#settle(key, state, settle);
    }
  }

  #certificates(
    database: BetterSqlite3.Database,
    { certificates, imports, renewals }: Facts,
    expect: Expect,
    settle: boolean,
  ): void {
    const names = new Set(database.prepare('select name from certificates').pluck().all());
    for (const [name, certificate] of certificates) {
      const state = names.has(name) ? 'present' : 'absent';
      expect(certificate.may.has(state), `${name} is ${state}, which is impossible`);
      this.#settle(certificate, state, settle);
    }
    const prints = database.prepare('select fingerprint_sha256 from certificate_versions').pluck().all();
    const counts = new Map<unknown, number>();
    for (const print of prints) counts.set(print, (counts.get(print) ?? 0) + 1);
    for (const [print, one] of imports) {
      const count = counts.get(print) ?? 0;
      const state = count > 0 ? 'present' : 'absent';
      expect(
        count <= 1 && one.may.has(state),
        `import ${print} into ${one.certificate} is there ${count} times`,
      );
      this.#settle(one, state, settle);
    }
    const known = new Set(database.prepare('select id from renewals').pluck().all());
    for (const id of renewals.keys()) expect(known.has(id), `renewal ${id} was accepted but is missing`);
  }

  #settle<S extends KeyState | Presence>(thing: { may: ReadonlySet<S> }, state: S, settle: boolean): void {
    if (thing.may.size === 1) return;
    this.doubts[state === 'absent' ? 'undone' : 'done'] += 1;
    if (settle) thing.may = new Set([state]);
  }
}

type Expect = (holds: boolean, sentence: string) => void;
type VersionView = { readonly version: number; readonly fingerprint_sha256: string };
type EventRow = { id: number; request_id: string; resource: string; detail: string };

function tellsOf({ resource, detail }: { resource: string; detail: string }, download: Download): boolean {
  const { artifact, version } = JSON.parse(detail) as { artifact: string; version: number };
  const isIt = resource === `certificate:${download.certificate}` && version === download.version;
  return isIt && artifact === download.artifact;
}

/** Queries for inconsistencies. Each must return no rows. */
const halfMade: Readonly<Record<string, string>> = {
  'a certificate with a gap in its versions': `
    select c.name from certificates c left join certificate_versions v on v.certificate_id = c.id
    group by c.id having c.current_version is not max(v.version) or max(v.version) is not count(v.id)`,
  'a version without a key or a chain': `
    select id from certificate_versions where length(sealed_private_key) < 100 or length(certificate_pem) < 100`,
  'a version without its event': `
    with told as (select resource, json_extract(detail, '$.version') as version, count(*) as count from audit_events
      where action in ('certificate.issue', 'certificate.import') group by 1, 2)
    select c.name, v.version from certificate_versions v join certificates c on c.id = v.certificate_id
    left join told on told.resource = 'certificate:' || c.name and told.version = v.version
    where told.count is not 1`,
  'a key without its event': `
    select id from api_keys where 'api-key:' || id not in
      (select resource from audit_events where action = 'api_key.create')`,
  'a revocation without its event, or an event without its revocation': `
    with told as (select resource from audit_events where action = 'api_key.revoke')
    select id from api_keys where (revoked_at is not null) is not ('api-key:' || id in told)`,
  'an existing key that was deleted': `
    select id from api_keys where 'api-key:' || id in
      (select resource from audit_events where action = 'api_key.delete')`,
  'a version of no certificate': `
    select id from certificate_versions where certificate_id not in (select id from certificates)
      and certificate_id not in (select certificate_id from deleted_certificates)`,
  'a key with an empty allowlist': `
    select id from api_keys where any_certificate = 0 and id not in (select api_key_id from api_key_certificates)`,
  'a renewal that succeeded without a version': `
    select r.id from renewals r left join certificate_versions v
      on v.certificate_id = r.certificate_id and v.version = r.version
    where r.status = 'succeeded' and v.id is null`,
  'a running renewal without an owner, or for longer than a lease': `
    select id from renewals where status = 'running'
      and (lease_owner is null or lease_expires_at > unixepoch() * 1000 + 62000)`,
  'a finished renewal with an owner or a key': `
    select id from renewals where status in ('succeeded', 'failed')
      and (lease_owner is not null or sealed_private_key is not null)`,
  'a failed renewal': `select id, error from renewals where status = 'failed'`,
  'a session without its event': `
    select id from sessions where 'session:' || id not in
      (select resource from audit_events where action = 'session.create')`,
  'a private CA without exactly one root and one intermediate': `
    select * from (select count(*) as count, count(distinct role) as roles from ca_certificates)
    where count <> 2 or roles <> 2`,
};

function nothingHalfMade(database: BetterSqlite3.Database, expect: Expect): void {
  for (const [what, sql] of Object.entries(halfMade)) {
    const found = database.prepare(sql).all();
    expect(found.length === 0, `${what}: ${JSON.stringify(found.slice(0, 3))}`);
  }
}

/** Unexpected files in a data directory. */
export function strangeFiles(data: string): string[] {
  const usual = /^(vault\.db(-wal|-shm)?|vault\.mark(\.draft)?|vault\.lock-[0-9a-f]{16}|master\.key)$/;
  return readdirSync(data).filter((name) => !usual.test(name));
}
