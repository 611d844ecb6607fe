/** Over HTTP: how far a version has come, which deployments a caller may delete, and which one host or API key has. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../../src/base/duration.ts';
import { recordPace } from '../../../../src/domain/access/limits/key-limits.ts';
import type { RolloutView } from '../../../../src/domain/deployments/rollout.ts';
import { eventsOf, makeKey, renewCertificate } from '../../../harness/http/fixtures.ts';
import { fleet, report } from '../../../harness/http/fleet.ts';

const problem = (detail: string) => ({ status: 403, code: 'forbidden', detail });

async function removal(t: TestContext, options: Parameters<typeof fleet>[1] = {}) {
  const made = await fleet(t, {
    administrators: { admin: 'ada', web: 'vera', ops: 'olga', db: 'dora' },
    roles: { vera: 'viewer', olga: 'operator', dora: 'operator' },
    reaches: { dora: ['team=db'] },
    ...options,
  });
  const { server, list } = made;
  const answered = async (response: Response) => {
    const text = await response.text();
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) };
  };
  const path = (id: string, certificate: string) => `/api/v1/certificates/${certificate}/deployments/${id}`;
  /** As a client. */
  const remove = async (id: string, raw = made.key.raw, certificate = 'shop') =>
    answered(await server.get(path(id, certificate), raw, { method: 'DELETE' }));
  /** As a person. */
  const removeAs = async (token: string, id: string, certificate = 'shop') =>
    answered(
      await server.get(path(id, certificate), undefined, { method: 'DELETE', ...made.session(token) }),
    );
  const ids = async (query = '') => (await list(`/deployments${query}`)).map(({ id }) => id);
  const deletions = () => eventsOf(server.dataDir, 'deployment.delete');
  const refusals = () => eventsOf(server.dataDir, 'access.refuse');
  return { ...made, remove, removeAs, ids, deletions, refusals };
}

suite('the deletion of a deployment', () => {
  test('by the API key that reports it removes it, and is in the audit log', async (t) => {
    const { key, reported, remove, ids, deletions } = await removal(t);
    await reported('one', report);
    await reported('two', report);
    assert.deepEqual(await remove('one'), { status: 204, body: undefined });
    assert.deepEqual(await ids(), ['two']);
    const [{ actor, resource, detail } = assert.fail(), ...others] = deletions();
    assert.deepEqual(others, []);
    assert.equal(actor, `api-key:${key.id}:web`);
    assert.equal(resource, 'certificate:shop');
    assert.deepEqual(detail, {
      deployment: 'one',
      host: report.host,
      job: report.job,
      version: 1,
      api_key: key.id,
    });
  });

  test('by another API key is forbidden and recorded, and the deployment stays', async (t) => {
    const { vault, reported, remove, ids, deletions, refusals } = await removal(t);
    await reported('one', report);
    const other = await makeKey(vault, { certificates: ['*'], scopes: ['certificates:read'] });
    const { status, body } = await remove('one', other.raw);
    assert.equal(status, 403);
    assert.deepEqual(body, problem('Another API key reports this deployment.'));
    assert.deepEqual(await ids(), ['one']);
    assert.deepEqual(deletions(), []);
    const [{ detail } = assert.fail(), ...others] = refusals();
    assert.deepEqual(others, []);
    assert.deepEqual(detail.reason, 'deployment');
  });

  test('by a key that may not read the certificate is forbidden, whether it exists or not', async (t) => {
    const { vault, reported, remove, ids } = await removal(t);
    await reported('one', report);
    const narrow = await makeKey(vault, { certificates: ['ledger'], scopes: ['certificates:read'] });
    const unscoped = await makeKey(vault, { certificates: ['*'], scopes: ['renewals:trigger'] });
    assert.equal((await remove('one', unscoped.raw)).status, 403);
    for (const name of ['shop', 'missing']) {
      for (const id of ['one', 'none']) assert.equal((await remove(id, narrow.raw, name)).status, 403);
    }
    assert.deepEqual(await ids(), ['one']);
  });

  test('by a key that may read only private keys removes what it reported', async (t) => {
    const { vault, reported, remove, ids } = await removal(t);
    const { raw } = await makeKey(vault, { certificates: ['shop'], scopes: ['private_keys:read'] });
    await reported('one', report, raw);
    assert.equal((await remove('one', raw)).status, 204);
    assert.deepEqual(await ids(), []);
  });

  test('needs the role operator, of a person or a key, for what others report', async (t) => {
    const { vault, reported, remove, removeAs, ids, deletions } = await removal(t);
    for (const id of ['one', 'two', 'three']) await reported(id, report);
    const keyOf = (role: 'viewer' | 'operator') => makeKey(vault, { role });
    assert.equal((await removeAs('web', 'one')).status, 403);
    assert.equal((await remove('one', (await keyOf('viewer')).raw)).status, 403);
    assert.deepEqual(await ids(), ['one', 'two', 'three']);
    assert.equal((await removeAs('admin', 'one')).status, 204);
    assert.equal((await removeAs('ops', 'two')).status, 204);
    assert.equal((await remove('three', (await keyOf('operator')).raw)).status, 204);
    assert.deepEqual(await ids(), []);
    assert.equal(deletions().length, 3);
  });

  test('by an operator is confined to the labels of the reach', async (t) => {
    const { reported, removeAs, ids } = await removal(t);
    await reported('one', report);
    await reported('book', report, undefined, 'ledger');
    assert.equal((await removeAs('db', 'one')).status, 403);
    assert.equal((await removeAs('db', 'book', 'ledger')).status, 204);
    assert.deepEqual(await ids(), ['one']);
  });

  test('of what does not exist is answered with 404', async (t) => {
    const { reported, remove, removeAs, deletions } = await removal(t);
    await reported('one', report);
    const codes = async (...answers: readonly { status: number; body: { code: string } }[]) =>
      answers.map(({ status, body }) => [status, body.code]);
    assert.deepEqual(
      await codes(
        await remove('two'),
        await removeAs('admin', 'two'),
        await removeAs('admin', 'one', 'ledger'),
        await removeAs('admin', 'a%20b'),
        await remove('one', undefined, 'missing'),
        await removeAs('admin', 'one', 'missing'),
      ),
      [
        ...[1, 2, 3, 4].map(() => [404, 'deployment_not_found']),
        ...[1, 2].map(() => [404, 'certificate_not_found']),
      ],
    );
    assert.deepEqual(deletions(), []);
  });

  test('is not undone by a report that was not written yet, but by the next one', async (t) => {
    const { vault, world, reported, remove, ids } = await removal(t);
    await reported('one', report);
    await vault.keyUse.write();
    world.advance(day);
    await reported('one', report);
    assert.equal((await remove('one')).status, 204);
    await vault.keyUse.write();
    assert.deepEqual(await ids(), []);
    await reported('one', report);
    assert.deepEqual(await ids(), ['one']);
  });

  test('counts for the rate of recorded requests of the key', async (t) => {
    const { server, key, reported, remove, ids } = await removal(t);
    await reported('one', report);
    for (let sent = 1; sent < recordPace.burst; sent++) server.context.keyLimits.recordExcessOf(key.id);
    const { status, body } = await remove('one');
    assert.deepEqual([status, body.code], [429, 'rate_limited']);
    assert.deepEqual(await ids(), ['one']);
  });
});

suite('the rollout of a certificate', () => {
  async function rollouts(t: TestContext) {
    const made = await removal(t);
    const rollout = async (certificate = 'shop'): Promise<RolloutView> => {
      const path = `/api/v1/certificates/${certificate}/rollout`;
      const response = await made.server.get(path, undefined, made.session('web'));
      assert.equal(response.status, 200);
      return (await response.json()) as RolloutView;
    };
    return { ...made, rollout };
  }

  const none = { deployments: 0, fetched: 0, live: 0, silent: 0 };

  test('has only zeros without deployments, and no version before the first one', async (t) => {
    const { vault, reported, rollout } = await rollouts(t);
    const issued_at = '2026-11-21T12:00:00Z';
    assert.deepEqual(await rollout(), { certificate: 'shop', version: 1, issued_at, ...none });
    await vault.db.write((writer) =>
      writer.updateTable('certificates').set({ current_version: null }).where('name', '=', 'shop').execute(),
    );
    await reported('one', { ...report, version: null });
    assert.deepEqual(await rollout(), {
      ...{ certificate: 'shop', version: null, issued_at: null },
      ...{ ...none, deployments: 1 },
    });
  });

  test('counts who fetched the current version and where it is live', async (t) => {
    const { vault, world, reported, rollout } = await rollouts(t);
    const failed = { result: 'failed', output: null };
    // Silent later: two schedules and an hour after its last report.
    await reported('gone', { ...report, version: 2 });
    world.advance(2 * day);
    await renewCertificate(vault, 'shop');
    const issued_at = '2026-11-23T12:00:00Z';
    world.advance(minute);
    await reported('old', report);
    assert.deepEqual(await rollout(), {
      ...{ certificate: 'shop', version: 2, issued_at },
      ...{ deployments: 2, fetched: 1, live: 1, silent: 0 },
    });
    world.advance(day + hour);
    await reported('old', report);
    await reported('empty', { ...report, version: null });
    await reported('live', { ...report, version: 2 });
    await reported('bare', { ...report, version: 2, reload: null, verify: null });
    await reported('newer', { ...report, version: 3 });
    await reported('reload', { ...report, version: 2, reload: failed });
    await reported('verify', { ...report, version: 2, verify: failed });
    await reported('run', { ...report, version: 2, error: 'disk full' });
    await reported('early', { ...report, version: 1, reload: failed });
    await reported('book', report, undefined, 'ledger');
    assert.deepEqual(await rollout(), {
      ...{ certificate: 'shop', version: 2, issued_at },
      ...{ deployments: 9, fetched: 6, live: 3, silent: 1 },
    });
    assert.equal((await rollout('ledger')).live, 1);
  });

  test('counts more deployments than one query reads', async (t) => {
    const { vault, reported, rollout } = await rollouts(t);
    await reported('one', report);
    const { id, ...row } = await vault.db.reader
      .selectFrom('deployments')
      .selectAll()
      .executeTakeFirstOrThrow();
    const copies = Array.from({ length: 600 }, (_, n) => ({ ...row, name: `n${n}` }));
    await vault.db.write(async (writer) => {
      for (let from = 0; from < copies.length; from += 100) {
        await writer
          .insertInto('deployments')
          .values(copies.slice(from, from + 100))
          .execute();
      }
    });
    const { deployments, fetched, live } = await rollout();
    assert.deepEqual([deployments, fetched, live], [601, 601, 601]);
  });

  test('is for administrators and viewers whose reach has the certificate', async (t) => {
    const { server, vault, key, session } = await rollouts(t);
    const get = async (...parameters: Parameters<typeof server.get>) =>
      (await server.get(...parameters)).status;
    const path = '/api/v1/certificates/shop/rollout';
    assert.equal(await get(path, key.raw), 403);
    assert.equal(await get(path, undefined, session('db')), 403);
    const viewer = await makeKey(vault, { role: 'viewer' });
    assert.equal(await get(path, viewer.raw), 200);
    assert.equal(await get('/api/v1/certificates/missing/rollout', viewer.raw), 404);
  });
});

test('the list has with ?host or ?api_key only what this host or key reports, on each page', async (t) => {
  const { server, vault, world, reported, ids, session } = await removal(t);
  const other = await makeKey(vault, { certificates: ['*'], scopes: ['certificates:read'] });
  for (const [id, host, raw] of [
    ['a', 'www1', undefined],
    ['b', 'www2', undefined],
    ['c', 'www1', other.raw],
    ['d', 'www1', undefined],
  ] as const) {
    await reported(id, { ...report, host }, raw);
    world.advance(minute);
  }
  assert.deepEqual(await ids('?host=www1'), ['a', 'c', 'd']);
  assert.deepEqual(await ids(`?api_key=${other.id}`), ['c']);
  assert.deepEqual(await ids(`?host=www2&api_key=${other.id}`), []);
  assert.deepEqual(await ids('?host=nothing'), []);
  const first = await server.get('/api/v1/deployments?host=www1&limit=2', undefined, session('admin'));
  const [, next = assert.fail()] = /<([^>]+)>; rel="next"/.exec(first.headers.get('link') ?? '') ?? [];
  const { search } = new URL(next);
  assert.deepEqual(await ids(search), ['d']);
});
