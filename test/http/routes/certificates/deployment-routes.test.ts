/** Deployments over HTTP: clients report what they installed, and administrators see the states. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../../src/base/duration.ts';
import { revokeApiKey } from '../../../../src/domain/access/api-keys.ts';
import { recordPace } from '../../../../src/domain/access/limits/key-limits.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { deleteCertificate } from '../../../../src/domain/certificates/certificates.ts';
import { deploymentsPerKey } from '../../../../src/domain/deployments/deployment-reports.ts';
import { type DeploymentView, pruneDeployments } from '../../../../src/domain/deployments/deployments.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { eventsOf, makeKey, renewCertificate } from '../../../harness/http/fixtures.ts';
import { fingerprint, fleet, report } from '../../../harness/http/fleet.ts';

suite('a report', () => {
  test('is listed for administrators with its state, and its first one is in the audit log', async (t) => {
    const { reported, list, events, key } = await fleet(t);
    await reported('web-123.web1', report);
    const [shown] = await list();
    assert.deepEqual(shown, {
      ...report,
      id: 'web-123.web1',
      certificate: 'shop',
      state: 'current',
      current_version: 1,
      api_key: { id: key.id, name: 'web' },
      deploy_target: null,
      created_at: '2026-11-21T12:00:00Z',
      changed_at: '2026-11-21T12:00:00Z',
      last_seen_at: '2026-11-21T12:00:00Z',
    });
    assert.deepEqual(await list('/certificates/shop/deployments'), [shown]);
    const [{ actor, resource, detail } = assert.fail(), ...others] = events();
    assert.deepEqual(others, []);
    assert.equal(actor, `api-key:${key.id}:web`);
    assert.equal(resource, 'certificate:shop');
    assert.deepEqual(detail, {
      deployment: 'web-123.web1',
      host: 'web1.example.test',
      version: 1,
      fingerprint_sha256: fingerprint,
      reload: 'ok',
      verify: 'ok',
      error: false,
    });
  });

  test('without news starts no transaction, adds no event, and is written behind', async (t) => {
    const { server, vault, world, reported, list, events } = await fleet(t);
    await reported('one', report);
    await vault.keyUse.write();
    world.advance(day);
    const write = t.mock.method(vault.db, 'write');
    const append = t.mock.method(vault.audit, 'append');
    const news = { next_run_at: '2026-11-23T12:00:00Z', verify: { result: 'ok', output: 'served in 3 ms' } };
    await reported('one', { ...report, ...news, client_version: '1.1.0' });
    assert.deepEqual([write.mock.callCount(), append.mock.callCount()], [0, 0]);
    await vault.keyUse.write();
    assert.equal(write.mock.callCount(), 1, 'with the last use of its key');
    const [shown] = await list();
    assert.equal(shown?.last_seen_at, '2026-11-22T12:00:00Z');
    assert.equal(shown.changed_at, '2026-11-21T12:00:00Z');
    assert.deepEqual({ ...shown, ...news }, shown);
    assert.equal(shown.client_version, '1.1.0');
    assert.equal(events().length, 1);
    assert.equal(eventsOf(server.dataDir, 'access.refuse').length, 0);
  });

  const changes: readonly (readonly [what: string, change: object, previous: object])[] = [
    ['another version', { version: 2 }, { version: 1 }],
    ['another fingerprint', { fingerprint_sha256: 'cd'.repeat(32) }, { fingerprint_sha256: fingerprint }],
    ['a failed reload', { reload: { result: 'failed', output: 'no such unit' } }, { reload: 'ok' }],
    ['a failed verification', { verify: { result: 'failed' } }, { verify: 'ok' }],
    ['no verification any more', { verify: null }, { verify: 'ok' }],
    ['a failed run', { error: 'disk full' }, { error: false }],
  ];
  for (const [what, change, previous] of changes) {
    test(`with ${what} adds one event with what was before`, async (t) => {
      const { world, reported, list, events } = await fleet(t);
      await reported('one', report);
      world.advance(hour);
      await reported('one', { ...report, ...change });
      await reported('one', { ...report, ...change });
      const [, { action, detail } = assert.fail(), ...others] = events();
      assert.deepEqual(others, []);
      assert.equal(action, 'deployment.update');
      assert.deepEqual(detail.previous, previous);
      const [shown] = await list();
      assert.equal(shown?.changed_at, '2026-11-21T13:00:00Z');
    });
  }

  test('with news is not overwritten by an older one that is written later', async (t) => {
    const { vault, world, reported, list } = await fleet(t);
    await reported('one', report);
    world.advance(minute);
    await reported('one', { ...report, host: 'old.example.test' });
    world.advance(minute);
    await reported('one', { ...report, host: 'new.example.test', version: 2 });
    await vault.keyUse.write();
    const [shown] = await list();
    assert.equal(shown?.host, 'new.example.test');
    assert.equal(shown.last_seen_at, '2026-11-21T12:02:00Z');
  });

  test('loses control characters and the ends of long texts, and members that the vault does not know', async (t) => {
    const { reported, list } = await fleet(t);
    const output = `\u001b[31mfailed\u0000\r\n${'x'.repeat(4000)}`;
    await reported('one', {
      ...report,
      host: 'web1\u202e\u0007',
      reload: { result: 'failed', output, exit_code: 1 },
      ocsp: { stapled: true },
    });
    const [shown] = await list();
    assert.equal(shown?.host, 'web1');
    assert.equal(shown.reload?.output, `[31mfailed ${'x'.repeat(4000)}`.slice(0, 500).concat('…'));
    assert.equal(Object.hasOwn(shown, 'ocsp'), false);
  });

  test('may leave out what the client does not know', async (t) => {
    const { reported, list } = await fleet(t);
    await reported('one', { host: 'web1', job: 'one', destination: '/tls' });
    const [shown] = await list();
    assert.equal(shown?.version, null);
    assert.equal(shown.next_run_at, null);
    assert.equal(shown.state, 'current', 'the version is younger than a day');
  });

  const malformed: readonly (readonly [what: string, id: string, body: unknown, status: number])[] = [
    ['no host', 'one', { ...report, host: undefined }, 400],
    ['a version that is not a number', 'one', { ...report, version: '1' }, 400],
    ['another result', 'one', { ...report, reload: { result: 'maybe' } }, 400],
    ['a fingerprint in another form', 'one', { ...report, fingerprint_sha256: 'AB:CD' }, 400],
    ['text that is not JSON', 'one', '{', 400],
    ['more than 16 KiB', 'one', { ...report, host: 'x'.repeat(17_000) }, 413],
    ['an id with a space', 'a%20b', report, 400],
    ['an id that begins with a dot', '.a', report, 400],
    ['an id with 129 characters', 'a'.repeat(129), report, 400],
  ];
  for (const [what, id, body, status] of malformed) {
    test(`with ${what} is rejected with ${status} and stores nothing`, async (t) => {
      const { put, list } = await fleet(t);
      assert.equal((await put(id, body)).status, status);
      assert.deepEqual(await list(), []);
    });
  }

  test('of a certificate outside the allowlist or without the scope is forbidden', async (t) => {
    const { vault, put, list } = await fleet(t);
    const narrow = await makeKey(vault, { certificates: ['ledger'], scopes: ['certificates:read'] });
    const other = await makeKey(vault, { certificates: ['*'], scopes: ['renewals:trigger'] });
    for (const { raw } of [narrow, other]) assert.equal((await put('one', report, raw)).status, 403);
    assert.equal((await put('one', report, narrow.raw, 'missing')).status, 403);
    assert.deepEqual(await list(), []);
  });

  test('of a key that may read only private keys is taken', async (t) => {
    const { vault, reported, list } = await fleet(t);
    const { raw } = await makeKey(vault, { certificates: ['shop'], scopes: ['private_keys:read'] });
    await reported('one', report, raw);
    assert.equal((await list()).length, 1);
  });

  test('of an unknown certificate is answered with 404', async (t) => {
    const { key, put } = await fleet(t);
    const { status, body } = await put('one', report, key.raw, 'missing');
    assert.deepEqual([status, body.code], [404, 'certificate_not_found']);
  });

  test('of an administrator is forbidden', async (t) => {
    const { server, session, list } = await fleet(t);
    const { headers } = session('admin');
    const response = await server.get('/api/v1/certificates/shop/deployments/one', undefined, {
      method: 'PUT',
      headers: { ...headers, 'Content-Type': 'application/json' },
      body: JSON.stringify(report),
    });
    assert.equal(response.status, 403);
    assert.deepEqual(await list(), []);
  });

  test('of another API key is rejected while the first one is active, and takes over once it is revoked', async (t) => {
    const { vault, world, key, put, reported, list, events } = await fleet(t);
    const next = await makeKey(vault, { certificates: ['shop'], scopes: ['certificates:read'] });
    await reported('one', report);
    const { status, body } = await put('one', { ...report, version: 9 }, next.raw);
    assert.deepEqual([status, body.code], [409, 'deployment_exists']);
    assert.equal((await list())[0]?.version, 1);
    await revokeApiKey(vault, localCli, key.id);
    world.advance(minute);
    await reported('one', report, next.raw);
    const [shown, ...others] = await list();
    assert.deepEqual(others, []);
    assert.deepEqual(shown?.api_key, { id: next.id, name: 'web 2' });
    assert.deepEqual(events().at(-1)?.detail.previous, { api_key: key.id });
  });

  test('of one deployment more than a key may have is rejected', async (t) => {
    const { server, key, put, reported } = await fleet(t);
    await reported('one', report);
    outside(server.dataDir, (db) =>
      db.exec(`with recursive n (i) as (select 2 union all select i + 1 from n where i < ${deploymentsPerKey})
        insert into deployments (certificate_id, api_key_id, name, host, job, destination, created_at, changed_at,
          last_seen_at, silent_at)
        select certificate_id, api_key_id, 'n' || i, host, job, destination, created_at, changed_at, last_seen_at, silent_at
        from n, deployments where deployments.name = 'one'`),
    );
    const { status, body } = await put('other', report);
    assert.deepEqual([status, body.code], [409, 'too_many_deployments']);
    await reported('one', { ...report, version: 2 }, key.raw);
  });

  test('counts for the rate of recorded requests of the key', async (t) => {
    const { server, key, put, list } = await fleet(t);
    for (let sent = 0; sent < recordPace.burst; sent++) server.context.keyLimits.recordExcessOf(key.id);
    const { status, body } = await put('one', report);
    assert.deepEqual([status, body.code], [429, 'rate_limited']);
    assert.deepEqual(await list(), []);
  });
});

suite('the list of deployments', () => {
  async function states(t: TestContext) {
    const made = await fleet(t);
    const { vault, world, reported } = made;
    // Silent: its last word was two days and more ago.
    await reported('gone', report);
    world.advance(2 * day);
    await renewCertificate(vault, 'shop');
    world.advance(day + 2 * hour);
    await reported('old', report);
    await reported('new', { ...report, version: 2 });
    await reported('broken', { ...report, version: 2, reload: { result: 'failed', output: 'no such unit' } });
    await reported('ledger', report, undefined, 'ledger');
    return made;
  }
  const ids = (shown: readonly DeploymentView[]) => shown.map(({ id }) => id);

  const filters: readonly (readonly [query: string, ids: readonly string[]])[] = [
    ['', ['gone', 'old', 'new', 'broken', 'ledger']],
    ['?state=current', ['new', 'ledger']],
    ['?state=outdated', ['old']],
    ['?state=failing', ['broken']],
    ['?state=silent', ['gone']],
    ['?label=team%3Dweb', ['gone', 'old', 'new', 'broken']],
    ['?label=team%3Dweb,env%3Dprod&state=current', ['new']],
    ['?label=team%3Dnone', []],
    ['?limit=2', ['gone', 'old']],
  ];
  test('has with each filter what fits', async (t) => {
    const { list } = await states(t);
    for (const [query, expected] of filters) {
      assert.deepEqual(ids(await list(`/deployments${query}`)), expected, query);
    }
    assert.deepEqual(ids(await list('/certificates/shop/deployments?state=failing')), ['broken']);
    assert.deepEqual(ids(await list('/certificates/ledger/deployments')), ['ledger']);
  });

  test('keeps its filters on the next pages', async (t) => {
    const { server, session, list } = await states(t);
    const response = await server.get(
      '/api/v1/deployments?label=team%3Dweb&limit=3',
      undefined,
      session('admin'),
    );
    const [, next = assert.fail()] = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '') ?? [];
    const { search, pathname } = new URL(next);
    assert.deepEqual(ids(await list(`${pathname}${search}`.replace('/api/v1', ''))), ['broken']);
  });

  test('shows a person whose reach is a label only deployments of certificates with it', async (t) => {
    const { server, list, session } = await states(t);
    assert.deepEqual(ids(await list('/deployments', 'web')), ['gone', 'old', 'new', 'broken']);
    assert.deepEqual(ids(await list('/deployments?limit=2', 'web')), ['gone', 'old']);
    assert.deepEqual(ids(await list('/certificates/shop/deployments?state=current', 'web')), ['new']);
    const refused = await server.get('/api/v1/certificates/ledger/deployments', undefined, session('web'));
    assert.equal(refused.status, 403);
    outside(server.dataDir, (db) =>
      db.exec(`insert into object_labels (kind, label, object_id)
        select 'certificate', 'team=web', id from certificates where name = 'ledger'`),
    );
    assert.deepEqual(ids(await list('/deployments', 'web')), ['gone', 'old', 'new', 'broken']);
  });

  test('is closed to API keys without a role and open to a viewer', async (t) => {
    const { server, vault, key } = await states(t);
    assert.equal((await server.get('/api/v1/deployments', key.raw)).status, 403);
    const viewer = await makeKey(vault, {
      certificates: ['shop'],
      scopes: ['certificates:read'],
      role: 'viewer',
    });
    assert.equal((await server.get('/api/v1/deployments', viewer.raw)).status, 200);
  });

  test('loses the deployments of a deleted certificate and of a deleted API key', async (t) => {
    const { vault, list } = await states(t);
    await deleteCertificate(vault, localCli, 'ledger', { force: true });
    assert.deepEqual(ids(await list()), ['gone', 'old', 'new', 'broken']);
    await vault.db.write((writer) => writer.deleteFrom('api_keys').execute());
    assert.deepEqual(await list(), []);
  });

  test('keeps silent deployments for 30 days', async (t) => {
    const { vault, world, list } = await states(t);
    const { signal } = new AbortController();
    world.advance(28 * day);
    assert.equal(await pruneDeployments(vault, signal), 0);
    world.advance(2 * day - hour);
    assert.equal(await pruneDeployments(vault, signal), 1);
    assert.deepEqual(ids(await list()), ['old', 'new', 'broken', 'ledger']);
  });
});
