/** Checks that a database on a server matches every response of the nodes, and has nothing incomplete. */
import pg from 'pg';
import type { Facts } from './ledger.ts';

type Expect = (holds: boolean, sentence: string) => void;
type Row = Record<string, unknown>;
type EventRow = { id: number; request_id: string; resource: string; detail: string };
/** An object of the facts. */
type May<S extends string> = { may: ReadonlySet<S> };

/** Remembers what was checked, so that repeated checks stay fast. */
export class ServerTruths {
  readonly #url: string;
  #downloads = 0;
  #unchanged = 0;
  #events = 0;
  /** The number of comparisons with responses. */
  compared = 0;
  /** Requests without a response, and how many of them were found done. */
  readonly doubts = { done: 0, undone: 0 };

  constructor(url: string) {
    this.#url = url;
  }

  /** Runs all checks on one snapshot and returns the broken promises. An uncertain state becomes certain as found. */
  async broken(facts: Facts): Promise<string[]> {
    const broken: string[] = [];
    const expect = (holds: boolean, sentence: string) => {
      this.compared += 1;
      if (!holds) broken.push(sentence);
    };
    await withRows(this.#url, async (rows) => {
      await this.#recorded(rows, facts, expect);
      await this.#kept(rows, facts, expect);
      for (const [what, statement] of Object.entries(halfMade)) {
        const found = await rows(statement);
        expect(found.length === 0, `${what}: ${JSON.stringify(found.slice(0, 3))}`);
      }
    });
    return broken;
  }

  /** Every answered download is in the log exactly once, and no poll that was answered with 304. */
  async #recorded(rows: Rows, { downloads, unchanged }: Facts, expect: Expect): Promise<void> {
    const events = new Map<string, EventRow & { count: number }>();
    const found = (await rows(
      `select id, request_id, resource, detail from audit_events where action = 'certificate.download' and id > ${this.#events}`,
    )) as EventRow[];
    for (const row of found) {
      events.set(row.request_id, { ...row, count: (events.get(row.request_id)?.count ?? 0) + 1 });
      this.#events = Math.max(this.#events, row.id);
    }
    for (const download of downloads.slice(this.#downloads)) {
      const event = events.get(download.requestId);
      const { artifact, version } = JSON.parse(event?.detail ?? '{}') as {
        artifact?: string;
        version?: number;
      };
      const isSo =
        event?.count === 1 &&
        event.resource === `certificate:${download.certificate}` &&
        artifact === download.artifact &&
        version === download.version;
      expect(isSo, `a download is not recorded exactly once: ${JSON.stringify({ download, event })}`);
    }
    this.#downloads = downloads.length;
    for (const id of unchanged.slice(this.#unchanged))
      expect(!events.has(id), `a 304 is recorded as a download: ${JSON.stringify(events.get(id))}`);
    this.#unchanged = unchanged.length;
  }

  async #kept(rows: Rows, facts: Facts, expect: Expect): Promise<void> {
    const keys = new Map<unknown, unknown>();
    for (const { name, revoked_at } of await rows('select name, revoked_at from api_keys')) {
      expect(
        facts.keys.has(String(name)) && !keys.has(name),
        `the key ${name} was not requested, or is there twice`,
      );
      keys.set(name, revoked_at === null ? 'active' : 'revoked');
    }
    this.#compare('key', facts.keys, (name) => keys.get(name) ?? 'absent', expect);
    const names = await column(rows, 'select name from certificates');
    this.#compare('certificate', facts.certificates, (name) => presence(names.includes(name)), expect);
    const prints = await column(rows, 'select fingerprint_sha256 from certificate_versions');
    expect(new Set(prints).size === prints.length, 'a certificate is there twice');
    this.#compare('import', facts.imports, (print) => presence(prints.includes(print)), expect);
    const renewals = new Set(await column(rows, 'select id from renewals'));
    for (const id of facts.renewals.keys())
      expect(renewals.has(id), `renewal ${id} was accepted but is missing`);
  }

  #compare<S extends string>(
    what: string,
    things: ReadonlyMap<string, May<S>>,
    stateOf: (name: string) => unknown,
    expect: Expect,
  ): void {
    for (const [name, thing] of things) {
      const state = stateOf(name) as S;
      expect(
        thing.may.has(state),
        `${what} ${name} is ${state} but can only be ${[...thing.may].join(' or ')}`,
      );
      if (thing.may.size === 1) continue;
      this.doubts[state === 'absent' ? 'undone' : 'done'] += 1;
      thing.may = new Set([state]);
    }
  }
}

type Rows = (statement: string) => Promise<Row[]>;

/** Lends queries in one snapshot; resolves with what `work` does. */
export async function withRows<T>(url: string, work: (rows: Rows) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: 10_000,
    query_timeout: 60_000,
  });
  client.on('error', () => undefined);
  // As the vault reads them: no number here is too great.
  client.setTypeParser(pg.types.builtins.INT8, Number);
  await client.connect();
  try {
    await client.query('begin isolation level repeatable read read only');
    return await work(async (statement) => (await client.query(statement)).rows as Row[]);
  } finally {
    await client.end();
  }
}

async function column(rows: Rows, statement: string): Promise<unknown[]> {
  return (await rows(statement)).flatMap((row) => Object.values(row));
}

function presence(isThere: boolean): string {
  return isThere ? 'present' : 'absent';
}

/** Queries for what may never be there. Each must return no rows. */
const halfMade: Readonly<Record<string, string>> = {
  'a gap in the audit log': `
    select count(*), min(id), max(id) from audit_events having count(*) <> max(id) - min(id) + 1 or min(id) <> 1`,
  'a certificate with a gap in its versions': `
    select c.name from certificates c left join certificate_versions v on v.certificate_id = c.id
    group by c.id having c.current_version is distinct from max(v.version) or coalesce(max(v.version), 0) <> count(v.id)`,
  'a version without a key or a chain': `
    select id from certificate_versions where length(sealed_private_key) < 100 or length(certificate_pem) < 100`,
  'a version without its event, or with several': `
    with told as (select resource, (detail::jsonb ->> 'version')::bigint as version, count(*) as count from audit_events
      where action in ('certificate.issue', 'certificate.import') group by 1, 2)
    select c.name, v.version, told.count from certificate_versions v join certificates c on c.id = v.certificate_id
    left join told on told.resource = 'certificate:' || c.name and told.version = v.version
    where told.count is distinct from 1`,
  'a renewal carried out twice, or a version that nobody requested': `
    select c.name, count(distinct v.id) as versions, count(distinct r.id) as renewals, count(distinct r.version) as results
    from certificates c left join certificate_versions v on v.certificate_id = c.id
    left join renewals r on r.certificate_id = c.id and r.status = 'succeeded'
    join issuers i on i.id = c.issuer_id
    group by c.id, i.type having count(distinct r.id) <> count(distinct r.version)
      or count(distinct v.id) <> count(distinct r.id) + case i.type when 'acme' then 0 else 1 end`,
  'two open renewals of a certificate': `
    select certificate_id from renewals where status in ('queued', 'running') group by 1 having count(*) > 1`,
  'a renewal that succeeded without a version': `
    select r.id from renewals r left join certificate_versions v
      on v.certificate_id = r.certificate_id and v.version = r.version
    where r.status = 'succeeded' and v.id is null`,
  'a finished renewal with an owner or a key': `
    select id from renewals where status in ('succeeded', 'failed')
      and (lease_owner is not null or sealed_private_key is not null)`,
  'a failed renewal': `select id, error from renewals where status = 'failed'`,
  'a key without its event, or with several': `
    select id from api_keys where (select count(*) from audit_events
      where action = 'api_key.create' and resource = 'api-key:' || api_keys.id) <> 1`,
  'a revocation without its event, or an event without its revocation': `
    select id from api_keys where (revoked_at is not null) is distinct from exists
      (select from audit_events where action = 'api_key.revoke' and resource = 'api-key:' || api_keys.id)`,
  'a key that was deleted and is there, or is gone without its event': `
    select told.resource, told.created, told.deleted from (
      select resource, count(*) filter (where action = 'api_key.create') as created,
        count(*) filter (where action = 'api_key.delete') as deleted
      from audit_events where action in ('api_key.create', 'api_key.delete') group by 1) as told
    left join api_keys on 'api-key:' || api_keys.id = told.resource
    where told.created <> 1 or told.deleted <> (case when api_keys.id is null then 1 else 0 end)`,
  'a certificate that was deleted and is there, or is gone without its event': `
    select told.resource, told.created, told.deleted from (
      select resource, count(*) filter (where action = 'certificate.create') as created,
        count(*) filter (where action = 'certificate.delete') as deleted
      from audit_events where action in ('certificate.create', 'certificate.delete') group by 1) as told
    left join certificates on 'certificate:' || certificates.name = told.resource
    where told.created > 1 or told.deleted <> (case when certificates.id is null then 1 else 0 end)`,
  'a deleted certificate without its kept versions': `
    select d.name from deleted_certificates d left join certificate_versions v on v.certificate_id = d.certificate_id
    group by d.id, d.name having count(v.id) = 0`,
  'a version of no certificate': `
    select id from certificate_versions where certificate_id not in (select id from certificates)
      and certificate_id not in (select certificate_id from deleted_certificates)`,
  'a key with an empty allowlist': `
    select id from api_keys where any_certificate = 0 and id not in (select api_key_id from api_key_certificates)`,
  'a session without its event': `
    select id from sessions where not exists
      (select from audit_events where action = 'session.create' and resource = 'session:' || sessions.id)`,
  'a private CA without exactly one root and one intermediate': `
    select * from (select count(*) as count, count(distinct role) as roles from ca_certificates) as ca
    where count <> 2 or roles <> 2`,
};
