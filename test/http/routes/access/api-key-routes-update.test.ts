/** Changing an API key over HTTP: only what the body names, at once, and recorded with the former values. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { administration } from '../../../harness/http/administration.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

const path = '/api/v1/api-keys';

type Key = Readonly<Record<string, unknown>>;

async function prepared(t: Parameters<typeof administration>[0]) {
  const admin = await administration(t);
  for (const name of ['a', 'b']) await makeCertificate(admin.server.vault, name);
  const key = await makeKey(admin.server.vault, {
    name: 'www',
    scopes: ['certificates:read'],
    certificates: ['a'],
    allowed_networks: ['127.0.0.0/8'],
    expires_at: '2027-01-01T00:00:00Z',
  });
  const statuses = async () => {
    const paths = ['a', 'b', 'a/private.key'].map((name) => `/api/v1/certificates/${name}`);
    return Promise.all(paths.map(async (one) => (await admin.server.get(one, key.raw)).status));
  };
  return { ...admin, ...key, statuses };
}

suite('a change of an API key', () => {
  test('is rejected with the path of the invalid field, and nothing changes', async (t) => {
    const { server, expect, id, statuses } = await prepared(t);
    await makeKey(server.vault, { name: 'taken' });
    const before = await expect<Key[]>(200, 'GET', path);
    const wrong: [status: number, body: object, where: string | undefined][] = [
      [400, { scopes: [] }, 'scopes'],
      [400, { scopes: ['everything'] }, 'scopes.0'],
      [400, { certificates: [] }, 'certificates'],
      [400, { certificates: ['none'] }, 'certificates'],
      [400, { allowed_networks: ['here'] }, 'allowed_networks.0'],
      [400, { allowed_networks: null }, 'allowed_networks'],
      [400, { expires_at: 'soon' }, 'expires_at'],
      [400, { expires_at: '2020-01-01T00:00:00Z' }, 'expires_at'],
      [400, { name: ' ' }, 'name'],
      [400, { prefix: 'vk_aaaaaaaaaaaa' }, ''],
      [409, { name: 'taken' }, 'name'],
    ];
    for (const [status, body, where] of wrong) {
      const { errors } = await expect<{ errors: { path: string }[] }>(status, 'PATCH', `${path}/${id}`, body);
      assert.equal(errors[0]?.path, where, JSON.stringify(body));
    }
    await expect(404, 'PATCH', `${path}/99`, { name: 'x' });
    assert.deepEqual(await expect(200, 'GET', path), before);
    assert.deepEqual(await statuses(), [200, 403, 403]);
    assert.deepEqual(eventsOf(server.dataDir, 'api_key.update'), []);
    await expect(200, 'POST', `${path}/${id}/revoke`);
    assert.equal((await expect(409, 'PATCH', `${path}/${id}`, { name: 'x' })).code, 'api_key_inactive');
  });

  test('changes only the given fields immediately, and the event lists their former values', async (t) => {
    const { server, expect, id, raw, statuses } = await prepared(t);
    const before = await expect<Key[]>(200, 'GET', path);
    assert.deepEqual(await statuses(), [200, 403, 403]);
    const event = () => eventsOf(server.dataDir, 'api_key.update').at(-1);
    const changed = async (body: object) => expect<Key>(200, 'PATCH', `${path}/${id}`, body);

    const view = await changed({ certificates: ['b'] });
    assert.deepEqual(
      { ...view, last_used_at: null, last_used_ip: null },
      { ...before[0], certificates: ['b'] },
    );
    assert.deepEqual(await statuses(), [403, 200, 403]);
    assert.deepEqual([event()?.actor, event()?.resource], ['admin:alice', `api-key:${id}`]);
    assert.deepEqual(event()?.detail, {
      name: 'www',
      prefix: raw.slice(0, 15),
      scopes: ['certificates:read'],
      certificates: ['b'],
      allowed_networks: ['127.0.0.0/8'],
      profiles: [],
      expires_at: '2027-01-01T00:00:00Z',
      before: { certificates: ['a'] },
    });

    await changed({ scopes: ['private_keys:read', 'certificates:read'], certificates: ['*'] });
    assert.deepEqual(await statuses(), [200, 200, 200]);
    assert.deepEqual(event()?.detail.before, { scopes: ['certificates:read'], certificates: ['b'] });

    await changed({ allowed_networks: ['192.0.2.0/24'] });
    assert.deepEqual(await statuses(), [403, 403, 403]);
    assert.deepEqual((await changed({ allowed_networks: [] })).allowed_networks, []);
    assert.deepEqual(await statuses(), [200, 200, 200]);

    assert.equal((await changed({ expires_at: null, name: 'shop' })).expires_at, null);
    assert.deepEqual(event()?.detail.before, { name: 'www', expires_at: '2027-01-01T00:00:00Z' });
    const events = eventsOf(server.dataDir, 'api_key.update').length;
    await changed({ name: 'shop', scopes: ['certificates:read', 'private_keys:read'] });
    await changed({});
    assert.equal(eventsOf(server.dataDir, 'api_key.update').length, events, 'the same values are no change');
  });

  test('can extend an expired key, and keeps a past expiry when only other fields change', async (t) => {
    const { server, expect, id, statuses } = await prepared(t);
    server.world.advance(365 * 86_400_000);
    await expect(200, 'PATCH', `${path}/${id}`, { certificates: ['b'] });
    assert.deepEqual(await statuses(), [401, 401, 401]);
    await expect(200, 'PATCH', `${path}/${id}`, { expires_at: '2030-01-01T00:00:00Z' });
    assert.deepEqual(await statuses(), [403, 200, 403]);
  });

  test('returns 403 for API keys', async (t) => {
    const { server, id, raw } = await prepared(t);
    const init = { method: 'PATCH', body: '{}', headers: { 'Content-Type': 'application/json' } };
    assert.equal((await server.get(`${path}/${id}`, raw, init)).status, 403);
  });
});
