/**
 * Long lists: they are read and encoded in portions, with turns of the event loop in between, and are the same as if
 * they were read at once.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type OutsideDatabase, outside } from '../../harness/database/outside-database.ts';
import { ownRows } from '../../harness/database/own-rows.ts';
import {
  type Administration,
  administration,
  allPages,
  type MessageText,
} from '../../harness/http/administration.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { TestWorld } from '../../harness/test-world.ts';
import { copyCertificates, copyRows } from './filled-tables.ts';

/** Rows that may be read between two turns of the event loop: those of a portion, and what else the request needs. */
const maxRows = 260;

/** A world that counts the turns, and calls `onTurn` in each. */
class TurningWorld extends TestWorld {
  turns = 0;
  onTurn: (() => void) | undefined;

  override readonly turn = async (): Promise<void> => {
    this.turns += 1;
    this.onTurn?.();
    await nextTurn();
  };
}

/** A server, with tables filled by `fill`. */
async function filled(t: TestContext, fill: (db: OutsideDatabase, now: number) => void) {
  const world = new TurningWorld();
  const admin = await administration(t, { world });
  await makeCertificate(admin.server.vault, 'web');
  outside(admin.server.dataDir, (db) => fill(db, world.now()));
  return { admin, world };
}

/**
 * The most rows that the database returned between two turns while `work` ran, without those that are only a name or id
 * and what they are sorted by, and the number of turns.
 */
async function turnsDuring({ server }: Administration, world: TurningWorld, work: () => Promise<unknown>) {
  const { db } = server.vault;
  const { reader } = db;
  let rows = 0;
  let most = 0;
  const counting = reader.withPlugin({
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      rows += result.rows.filter((row) => Object.keys(row).length > 2).length;
      most = Math.max(most, rows);
      return result;
    },
  });
  Object.assign(db, { reader: counting });
  world.turns = 0;
  world.onTurn = () => {
    rows = 0;
  };
  await work();
  world.onTurn = undefined;
  Object.assign(db, { reader });
  return { most, turns: world.turns };
}

type Named = { readonly name: string };

const certificates = '/api/v1/certificates';

const searches = [
  '',
  'sort=expiry',
  'sort=status',
  'status=valid',
  'status=expired&sort=expiry',
  'search=c00',
  'search=C2&sort=status',
  'issuer=local-ca',
  'issuer=&sort=expiry',
  'issuer=local-ca&status=disabled&sort=expiry&search=example',
];

suite('a page of several portions', () => {
  const count = 700;

  test('has the same certificates as many small pages, and a link if there are more', async (t) => {
    const { admin } = await filled(t, (db, now) => copyCertificates(db, count, now));
    for (const search of searches) {
      const path = `${certificates}?${search}${search === '' ? '' : '&'}`;
      const { all, pages } = await allPages<Named>(admin, `${path}limit=90`);
      assert.equal(pages, Math.ceil(all.length / 90), search);
      assert(all.length > 10, search);
      assert.equal(new Set(all.map(({ name }) => name)).size, all.length, search);
      for (const limit of [249, 250, 251, 500, 1000]) {
        const page = await admin.ask('GET', `${path}limit=${limit}`);
        assert.equal(page.text, JSON.stringify(all.slice(0, limit)), `${search} ${limit}`);
        assert.equal(page.headers.get('Content-Length'), String(Buffer.byteLength(page.text)));
        assert.equal(page.headers.has('Link'), all.length > limit, `${search} ${limit}`);
      }
    }
  });

  test('has only what a key may access, however long its allowlist is', async (t) => {
    const { admin } = await filled(t, (db, now) => copyCertificates(db, 3000, now));
    const { server } = admin;
    const { id, raw } = await makeKey(server.vault, { certificates: ['web'] });
    outside(server.dataDir, (db) =>
      db
        .prepare(
          'insert into api_key_certificates select ?, id from certificates where id > 1 and id % 5 > 0',
        )
        .run(id),
    );
    await ownRows(server.vault);
    const { all } = await allPages<Named>(admin, `${certificates}?sort=expiry`);
    const ids = outside(
      server.dataDir,
      (db) => new Map(db.prepare('select name, id from certificates').raw().all() as [string, number][]),
    );
    const own = all.filter(({ name }) => name === 'web' || (ids.get(name) ?? 0) % 5 > 0);
    assert(own.length > 2000 && own.length < 2500);
    const names = async (path: string) =>
      ((await (await server.get(path, raw)).json()) as Named[]).map(({ name }) => name);
    assert.deepEqual(
      await names(`${certificates}?sort=expiry&limit=1000`),
      own.slice(0, 1000).map(({ name }) => name),
    );
    assert.deepEqual(
      await names(`${certificates}?limit=1000`),
      own
        .map(({ name }) => name)
        .toSorted()
        .slice(0, 1000),
    );
  });

  test('is whole, and leads to the next one, if certificates are deleted while it is read', async (t) => {
    for (const search of ['', 'sort=status', 'sort=expiry', 'status=valid']) {
      const { admin, world } = await filled(t, (db, now) => copyCertificates(db, 2200, now));
      const before = (await allPages<Named>(admin, `${certificates}?${search}&limit=1000`)).all;
      const doomed = before.slice(330, 380).map(({ name }) => name);
      const left = before.filter(({ name }) => !doomed.includes(name));
      let turns = 0;
      world.onTurn = () => {
        turns += 1;
        // The first turn is before the request is authorized.
        if (turns !== 2) return;
        outside(admin.server.dataDir, (db) => {
          for (const name of doomed) db.prepare('delete from certificates where name = ?').run(name);
        });
      };
      const limit = 600;
      const page = await admin.ask('GET', `${certificates}?${search}&limit=${limit}`);
      assert(turns >= 2, search);
      assert.deepEqual(page.json, left.slice(0, limit), search);
      assert(page.headers.has('Link'), search);
    }
  });
});

/** SQL that adds `count` rows numbered `n`. */
const rows = (table: string, columns: string, values: string) => `insert into ${table} (${columns})
  with recursive numbers (n) as (select cast(1 as bigint) union all select n + 1 from numbers where n < 1100)
  select ${values} from numbers`;

const renewals = (status: string) =>
  rows(
    'renewals',
    'certificate_id, status, requested_by, requested_at, steps',
    `1, '${status}', 'system', n, '[{"at":1,"text":"an order"}]'`,
  );

const keys = rows(
  'api_keys',
  'name, prefix, hash, scopes, any_certificate, allowed_networks, created_at',
  `'k' || n, 'vk_' || n, zeroblob(32), '["certificates:read"]', 1, '[]', 1`,
);

/** Each with what fills it with 1,100 rows. */
const lists: Readonly<Record<string, string | ((db: OutsideDatabase, now: number) => void)>> = {
  '/api/v1/certificates?': (db, now) => copyCertificates(db, 1100, now),
  '/api/v1/certificates?sort=status&': (db, now) => copyCertificates(db, 1100, now),
  '/api/v1/certificates?search=c&': (db, now) => copyCertificates(db, 1100, now),
  '/api/v1/certificates/web/versions?': (db) =>
    copyRows(db, 'certificate_versions', 1100, { version: 'n + 1', serial: "'s' || n" }),
  '/api/v1/certificates/web/api-keys?': keys,
  '/api/v1/certificates/web/renewals?': renewals('failed'),
  '/api/v1/api-keys?': keys,
  '/api/v1/audit-events?': (db) =>
    copyRows(db, 'audit_events', 1100, { id: 'n + 1000', request_id: "'r' || n" }),
  '/api/v1/renewals?': renewals('failed'),
  '/api/v1/renewals?status=failed&': renewals('failed'),
  '/api/v1/renewals?status=succeeded&': renewals('succeeded'),
  '/api/v1/renewals?status=queued&': (db, now) => {
    copyCertificates(db, 1100, now);
    db.exec(`insert into renewals (certificate_id, status, requested_by, requested_at, held_until)
      select id, 'queued', 'system', id, 2e14 from certificates order by id * 7919 % 1103`);
  },
  '/api/v1/deleted-certificates?': rows(
    'deleted_certificates',
    'name, deleted_at, deleted_by, facts',
    `'d' || n, n, 'system', '{"settings":{"domains":"[]"},"issuer":null,"api_keys":[]}'`,
  ),
  '/api/v1/notification-deliveries?': (db) => {
    db.exec(
      `insert into notification_channels (name, type, target, sealed_settings, events, certificates, digest_days, created_at)
       values ('ops', 'webhook', 'https://ops.test', x'', '[]', '[]', 7, 1);
       insert into notifications (message_id, event, at, data) values ('m', 'test', 1, '{}')`,
    );
    db.exec(
      rows(
        'notification_deliveries',
        'notification_id, channel_id, status, queued_at, next_attempt_at, expires_at, ended_at',
        "1, 1, 'delivered', n, n, n, n",
      ),
    );
  },
};

suite('between two turns of the event loop,', () => {
  for (const [path, fill] of Object.entries(lists)) {
    test(`few rows of ${path.slice(0, -1)} are read, and pages have all of them`, async (t) => {
      const { admin, world } = await filled(t, (db, now) =>
        typeof fill === 'string' ? db.exec(fill) : fill(db, now),
      );
      const { all } = await allPages<object>(admin, `${path}limit=90`);
      assert(all.length >= 1100);
      let page: MessageText | undefined;
      const { most } = await turnsDuring(admin, world, async () => {
        page = await admin.ask('GET', `${path}limit=1000`);
      });
      assert.equal(page?.text, JSON.stringify(all.slice(0, 1000)));
      assert(page.headers.has('Link'));
      assert(most > 0 && most <= maxRows, `${most} rows`);
    });
  }

  test('few certificates and renewals are scanned if no index covers the query', async (t) => {
    const { admin, world } = await filled(t, (db, now) => {
      copyCertificates(db, 10_000, now);
      for (let n = 0; n < 40; n += 1) db.exec(renewals('failed'));
    });
    const turns = async (path: string) =>
      (await turnsDuring(admin, world, () => admin.expect(200, 'GET', path))).turns;
    const usual = await turns(`${certificates}?limit=1`);
    const whole = [
      `${certificates}?sort=status&limit=1`,
      `${certificates}?sort=expiry&limit=1`,
      `${certificates}?search=nothing`,
      `${certificates}?status=pending&search=nothing`,
      `${certificates}?issuer=local-ca&sort=expiry&limit=1`,
      '/api/v1/renewals?status=succeeded',
      '/api/v1/about',
    ];
    for (const path of whole) {
      const more = (await turns(path)) - usual;
      assert(more >= 3 && more < 20, `${more} turns for ${path}`);
    }
  });
});

test('pages of concurrent requests are read two at a time, at most one per client', async (t) => {
  const { admin } = await filled(t, (db, now) => copyCertificates(db, 700, now));
  const { server } = admin;
  const { raw } = await makeKey(server.vault);
  const { reader } = server.vault.db;
  let rows = 0;
  let most = 0;
  Object.assign(server.vault.db, {
    reader: reader.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        rows += result.rows.filter((row) => Object.keys(row).length > 2).length;
        most = Math.max(most, rows);
        return result;
      },
    }),
  });
  let isOver = false;
  const reset = () => {
    rows = 0;
    if (!isOver) setImmediate(reset);
  };
  setImmediate(reset);
  const order: string[] = [];
  const crowd = Array.from({ length: 20 }, async () => {
    const response = await server.get(`${certificates}?sort=expiry&limit=700`, raw);
    assert.equal(((await response.json()) as Named[]).length, 700);
    order.push('crowd');
  });
  const other = admin.ask('GET', `${certificates}?limit=700`).then(() => order.push('other'));
  await Promise.all([...crowd, other]);
  isOver = true;
  Object.assign(server.vault.db, { reader });
  assert(most <= 2 * maxRows + 100, `${most} rows`);
  assert(order.indexOf('other') < 10, `after ${order.indexOf('other')} others`);
});
