/** API keys over HTTP: shown once, listed without what is secret, ended at once, and all of it recorded. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { outside } from '../../../harness/database/outside-database.ts';
import { administration, allPages } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/api-keys';

type Key = {
  id: number;
  revoked_at: string | null;
  key?: string;
  state: string;
  certificates: string[];
  name: string;
};
type Problem = { code: string; detail: string; errors: { path: string }[] };

suite('creating an API key', () => {
  test('is rejected with the path of the invalid field, and stores nothing', async (t) => {
    const { server, expect } = await administration(t);
    const wrong: [object, string][] = [
      [{}, 'name'],
      [{ name: 'x', scopes: [], certificates: ['*'] }, 'scopes'],
      [{ name: 'x', scopes: ['everything'], certificates: ['*'] }, 'scopes.0'],
      [{ name: 'x', scopes: ['certificates:read'], certificates: ['nothing'] }, 'certificates'],
      [{ name: 'x', scopes: ['certificates:read'], certificates: ['*'], expires_at: 'soon' }, 'expires_at'],
      [
        { name: 'x', scopes: ['certificates:read'], certificates: ['*'], expires_at: '2020-01-01T00:00:00Z' },
        'expires_at',
      ],
    ];
    for (const [body, where] of wrong) {
      const { errors } = await expect<Problem>(400, 'POST', path, body);
      assert.equal(errors[0]?.path, where);
    }
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.create'), []);
  });

  test('rejects the name of an active key and accepts that of a revoked one', async (t) => {
    const { server, expect } = await administration(t);
    const body = { name: 'web', scopes: ['certificates:read'], certificates: ['*'] };
    const { id } = await expect<Key>(201, 'POST', path, body);
    const { code, detail, errors } = await expect<Problem>(409, 'POST', path, { ...body, name: ' web ' });
    assert.deepEqual([code, errors[0]?.path], ['api_key_exists', 'name']);
    assert.equal(
      detail,
      'API key "web" already exists (id 1). Choose another name, or replace the secret of that key: vault api-key rotate 1',
    );
    assert.equal((await expect<Key[]>(200, 'GET', path)).length, 1);
    assert.equal(eventsOf(server.dataDir, 'api_key.create').length, 1);
    await expect(409, 'POST', path, { ...body, name: 'WEB' });
    await expect(200, 'POST', `${path}/${id}/revoke`);
    await expect(201, 'POST', path, body);
    await expect(409, 'POST', path, body);
  });

  test('succeeds only once for concurrent requests with the same name', async (t) => {
    const { ask } = await administration(t);
    const body = { name: 'web', scopes: ['certificates:read'], certificates: ['*'] };
    const asked = await Promise.all(Array.from({ length: 5 }, () => ask('POST', path, body)));
    assert.deepEqual(asked.map(({ status }) => status).sort(), [201, 409, 409, 409, 409]);
  });

  test('returns a key that works immediately, and its secret is in no list, log or audit event', async (t) => {
    const admin = await administration(t);
    const { server, ask } = admin;
    await makeCertificate(server.vault, 'www');
    const body = {
      name: 'web',
      scopes: ['private_keys:read', 'certificates:read'],
      certificates: ['www'],
      expires_at: '2030-01-31T00:00:00+01:00',
    };
    const told = await ask('POST', path, body);
    assert.deepEqual([told.status, told.headers.get('Cache-Control')], [201, 'no-store']);
    const { key, ...view } = told.json as Key;
    assert.match(key ?? '', /^vk_[\w-]{12}\.[\w-]{43}$/);
    assert.deepEqual(view, {
      id: 1,
      name: 'web',
      prefix: key?.slice(0, 15),
      scopes: ['certificates:read', 'private_keys:read'],
      certificates: ['www'],
      allowed_networks: [],
      profiles: [],
      role: null,
      ...{ certificate_labels: [], reach: [], labels: [], client_certificate: null },
      created_at: '2026-11-21T12:00:00Z',
      expires_at: '2030-01-30T23:00:00Z',
      revoked_at: null,
      last_used_at: null,
      last_used_ip: null,
      state: 'active',
      previous_prefix: null,
      previous_expires_at: null,
      enrollment: null,
    });
    assert.equal((await server.get('/api/v1/certificates/www', key)).status, 200);
    const listed = await ask('GET', path);
    assert.deepEqual(listed.json, [view]);
    const secret = key?.split('.')[1] ?? '';
    assert(!listed.text.includes(secret) && !server.log.lines.join('\n').includes(secret));
    const stored = outside(server.dataDir, (db) =>
      JSON.stringify(db.prepare('select * from audit_events').all()),
    );
    assert(!stored.includes(secret));
    const [event] = eventsOf(server.dataDir, 'api_key.create');
    assert.deepEqual([event?.actor, event?.resource], ['admin:alice', 'api-key:1']);
    assert.equal(event?.request_id, told.headers.get('X-Request-Id'));
  });
});

test('an API key with a role creates keys with no more rights than its own, and an attempt is recorded', async (t) => {
  const { server } = await administration(t);
  await makeCertificate(server.vault, 'www');
  const ci = await makeKey(server.vault, { name: 'ci', role: 'operator', scopes: ['certificates:read'] });
  const create = (body: object) =>
    server.get(path, ci.raw, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ scopes: ['certificates:read'], certificates: ['*'], ...body }),
    });
  assert.equal((await create({ name: 'less', certificates: ['www'] })).status, 201);
  assert.equal((await create({ name: 'alike', role: 'operator' })).status, 201);
  for (const [more, what] of [
    [{ scopes: ['private_keys:read'] }, 'the scope private_keys:read'],
    [{ role: 'admin' }, 'the role admin'],
  ] as const) {
    const refused = await create({ name: 'more', ...more });
    assert.equal(refused.status, 403);
    const { code, detail } = (await refused.json()) as Problem;
    assert.equal(code, 'forbidden');
    assert.match(detail, new RegExp(`^A key cannot get ${what} from you: you do not have it yourself\\.`));
  }
  assert.deepEqual(
    eventsOf(server.dataDir, 'api_key.create').map(({ actor, detail }) => [actor, detail.name, detail.role]),
    [
      ['local-cli', 'ci', 'operator'],
      [ci.actor, 'less', undefined],
      [ci.actor, 'alike', 'operator'],
    ],
  );
  const refusals = eventsOf(server.dataDir, 'access.refuse');
  assert.deepEqual(
    refusals.map(({ actor, detail }) => [actor, detail.reason]),
    refusals.map(() => [ci.actor, 'more rights than its own']),
  );
  assert.equal(refusals.length, 2);
});

suite('the list of API keys', () => {
  test('contains each key once across pages of any size, and rejects invalid parameters', async (t) => {
    const admin = await administration(t);
    await makeCertificate(admin.server.vault, 'www');
    for (let count = 0; count < 5; count += 1) {
      await makeKey(admin.server.vault, { name: `key-${count}`, certificates: count % 2 ? ['*'] : ['www'] });
    }
    for (const limit of [1, 2, 5, 6]) {
      const { all, pages } = await allPages<Key>(admin, `${path}?limit=${limit}`);
      assert.equal(pages, Math.ceil(5 / limit), `no empty page at the end of ${limit}`);
      assert.deepEqual(
        all.map(({ name, certificates }) => `${name} ${certificates}`),
        ['key-0 www', 'key-1 *', 'key-2 www', 'key-3 *', 'key-4 www'],
      );
    }
    for (const query of ['limit=0', 'after=x', 'name=web'])
      await admin.expect(400, 'GET', `${path}?${query}`);
  });
});

suite('revoking an API key', () => {
  test('takes effect at the next request, and revoking it again changes nothing', async (t) => {
    const { server, expect } = await administration(t);
    await makeCertificate(server.vault, 'www');
    const { id, raw } = await makeKey(server.vault);
    assert.equal((await server.get('/api/v1/certificates/www', raw)).status, 200);
    const revoked = await expect<Key>(200, 'POST', `${path}/${id}/revoke`);
    assert.equal(revoked.state, 'revoked');
    assert.equal((await server.get('/api/v1/certificates/www', raw)).status, 401);
    server.world.advance(60_000);
    const again = await expect<Key>(200, 'POST', `${path}/${id}/revoke`);
    assert.equal(again.revoked_at, revoked.revoked_at);
    assert.equal(eventsOf(server.dataDir, 'api_key.revoke').length, 1);
  });

  test('is required before the key can be deleted', async (t) => {
    const { server, expect } = await administration(t);
    const { id } = await makeKey(server.vault);
    assert.equal((await expect<Problem>(409, 'DELETE', `${path}/${id}`)).code, 'api_key_active');
    await expect(200, 'POST', `${path}/${id}/revoke`);
    await expect(204, 'DELETE', `${path}/${id}`);
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert.deepEqual(
      eventsOf(server.dataDir, 'api_key.delete').map(({ actor }) => actor),
      ['admin:alice'],
    );
    for (const wrong of [id, 0, '01', 'x', '1.0', '9'.repeat(30)]) {
      assert.equal((await expect<Problem>(404, 'DELETE', `${path}/${wrong}`)).code, 'api_key_not_found');
      await expect(404, 'POST', `${path}/${wrong}/revoke`);
    }
  });
});
