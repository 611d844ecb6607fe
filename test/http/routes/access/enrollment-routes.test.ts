/** Enrollments over HTTP, as administrators manage them: what is refused, shown once, listed, revoked and deleted. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day } from '../../../../src/base/duration.ts';
import type { Role } from '../../../../src/base/role.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { administration, allPages } from '../../../harness/http/administration.ts';
import { checkedServer } from '../../../harness/http/checked.ts';
import { exchange, makeEnrollment, enrollmentsPath as path } from '../../../harness/http/enrollments.ts';
import { eventsOf, makeCertificate, makeKey } from '../../../harness/http/fixtures.ts';

type Enrollment = {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly token?: string;
  readonly revoked_at: string | null;
  readonly revoked_api_keys?: number;
  readonly uses: number;
  readonly labels: string[];
};
type Key = { readonly id: number; readonly name: string; readonly state: string; readonly key: string };
type Problem = { code: string; detail: string; errors: { path: string; message: string }[] };

const usual = { certificates: ['*'], expires_at: '2027-01-01T00:00:00Z' };

suite('creating an enrollment', () => {
  test('is rejected with the path of the invalid field, and stores nothing', async (t) => {
    const { server, expect } = await administration(t);
    const wrong: readonly (readonly [change: object, path: string])[] = [
      [{ certificates: [] }, 'certificates'],
      [{ certificates: ['nothing'] }, 'certificates'],
      [{ expires_at: undefined }, 'expires_at'],
      [{ expires_at: '2026-11-21T12:00:00Z' }, 'expires_at'],
      [{ key_expires_at: '2026-12-31T00:00:00Z' }, 'key_expires_at'],
      [{ scopes: [] }, 'scopes'],
      [{ scopes: ['everything'] }, 'scopes.0'],
      [{ uses: 0 }, 'uses'],
      [{ uses: 10_001 }, 'uses'],
      [{ uses: 1.5 }, 'uses'],
      [{ allowed_networks: ['192.0.2.0/33'] }, 'allowed_networks.0'],
      [{ labels: ['Team Web'] }, 'labels.0'],
      [{ name: 'ra\u0441k' }, 'name'],
      [{ name: 'rack\u0007' }, 'name'],
      [{ role: 'admin' }, ''],
    ];
    for (const [change, where] of wrong) {
      const { code, errors } = await expect<Problem>(400, 'POST', path, { ...usual, ...change });
      assert.deepEqual([code, errors[0]?.path], ['invalid_request', where], JSON.stringify(change));
    }
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert.deepEqual(eventsOf(server.dataDir, 'enrollment.create'), []);
  });

  test('returns the token once; lists, the log, the database and the audit log lack it', async (t) => {
    const { server, ask } = await administration(t, { trustedProxies: '127.0.0.1' });
    await makeCertificate(server.vault, 'www');
    const body = {
      name: 'rack-4',
      certificates: ['www'],
      certificate_labels: ['team=web'],
      allowed_networks: ['192.0.2.0/24'],
      bind_address: true,
      labels: ['team=web', 'site=a'],
      uses: 40,
      expires_at: '2027-01-01T01:00:00+01:00',
      key_expires_at: '2028-01-01T00:00:00Z',
    };
    const made = await ask('POST', path, body);
    assert.deepEqual([made.status, made.headers.get('Cache-Control')], [201, 'no-store'], made.text);
    const { token = '', ...view } = made.json as Enrollment;
    assert.match(token, /^ve_[\w-]{12}\.[\w-]{43}$/);
    assert.deepEqual(view, {
      ...body,
      id: 1,
      prefix: token.slice(0, 15),
      scopes: ['certificates:read', 'private_keys:read'],
      labels: ['site=a', 'team=web'],
      uses: 0,
      max_uses: 40,
      created_by: 'admin:alice',
      created_at: '2026-11-21T12:00:00Z',
      expires_at: '2027-01-01T00:00:00Z',
      revoked_at: null,
      last_used_at: null,
      state: 'active',
    });
    const listed = await ask('GET', path);
    assert.deepEqual(listed.json, [view]);
    assert.deepEqual((await ask('GET', `${path}/1`)).json, view);
    const { status, json } = await exchange(server, token, { host: 'www1' }, '192.0.2.9');
    assert.equal(status, 201, JSON.stringify(json));
    const stored = outside(server.dataDir, (db) =>
      JSON.stringify(
        ['enrollments', 'api_keys', 'audit_events'].map((table) =>
          db.prepare(`select * from ${table}`).all(),
        ),
      ),
    );
    const secret = token.slice(16);
    const seen = [listed.text, server.log.lines.join('\n'), stored, JSON.stringify(json)];
    for (const text of seen) assert(!text.includes(secret));
    const [event] = eventsOf(server.dataDir, 'enrollment.create');
    assert.deepEqual([event?.actor, event?.resource], ['admin:alice', 'enrollment:1']);
    assert.equal(event?.request_id, made.headers.get('X-Request-Id'));
    assert.deepEqual(event?.detail, {
      ...{ name: 'rack-4', prefix: token.slice(0, 15), scopes: ['certificates:read', 'private_keys:read'] },
      ...{ certificates: ['www'], certificate_labels: ['team=web'], labels: ['site=a', 'team=web'] },
      ...{ allowed_networks: ['192.0.2.0/24'], bind_address: true, max_uses: 40 },
      ...{ expires_at: '2027-01-01T00:00:00Z', key_expires_at: '2028-01-01T00:00:00Z' },
    });
  });

  test('takes the public prefix of the token as its name, and accepts the name of another enrollment', async (t) => {
    const { expect } = await administration(t);
    const { name, token } = await expect<Enrollment>(201, 'POST', path, usual);
    assert.equal(name, token?.slice(0, 15));
    for (const id of [2, 3]) {
      assert.equal((await expect<Enrollment>(201, 'POST', path, { ...usual, name: 'rack' })).id, id);
    }
  });
});

suite('the list of enrollments', () => {
  test('contains each enrollment once across pages of any size, and rejects invalid parameters', async (t) => {
    const admin = await administration(t);
    for (let count = 0; count < 5; count += 1) {
      const labels = count % 2 === 0 ? ['team=web'] : [];
      await makeEnrollment(admin.server.vault, { name: `rack-${count}`, labels });
    }
    const namesOf = (all: readonly Enrollment[]) => all.map(({ name }) => name);
    for (const limit of [1, 2, 5, 6]) {
      const { all, pages } = await allPages<Enrollment>(admin, `${path}?limit=${limit}`);
      assert.equal(pages, Math.ceil(5 / limit));
      assert.deepEqual(namesOf(all), ['rack-0', 'rack-1', 'rack-2', 'rack-3', 'rack-4']);
    }
    const { all } = await allPages<Enrollment>(admin, `${path}?limit=1&label=team%3Dweb`);
    assert.deepEqual(namesOf(all), ['rack-0', 'rack-2', 'rack-4']);
    for (const query of ['limit=0', 'after=x', 'name=rack', 'label=%20']) {
      await admin.expect(400, 'GET', `${path}?${query}`);
    }
  });

  test('shows the state of each enrollment, and a used token stays used up after its expiry', async (t) => {
    const { server, expect } = await administration(t, { trustedProxies: '127.0.0.1' });
    const { vault, world } = server;
    await makeEnrollment(vault, { name: 'fresh', expires_at: '2030-01-01T00:00:00Z' });
    await makeEnrollment(vault, { name: 'late', expires_at: '2026-11-21T13:00:00Z' });
    const used = await makeEnrollment(vault, { name: 'used', expires_at: '2026-11-21T13:00:00Z' });
    const { id } = await makeEnrollment(vault, { name: 'gone', expires_at: '2026-11-21T13:00:00Z' });
    await exchange(server, used.token);
    await expect(200, 'POST', `${path}/${id}/revoke`, {});
    world.advance(day);
    const states = (await expect<Enrollment[]>(200, 'GET', path)).map((one) => `${one.name} ${one.state}`);
    assert.deepEqual(states, ['fresh active', 'late expired', 'used used_up', 'gone revoked']);
  });
});

suite('the list of API keys', () => {
  test('contains only the keys of an enrollment when asked for them, page by page', async (t) => {
    const admin = await administration(t, { trustedProxies: '127.0.0.1' });
    const { server, expect } = admin;
    await makeKey(server.vault, { name: 'by hand' });
    const rack = await makeEnrollment(server.vault, { uses: 3 });
    const other = await makeEnrollment(server.vault, { name: 'other' });
    for (const host of ['www1', 'www2', 'www3']) await exchange(server, rack.token, { host });
    await exchange(server, other.token, { host: 'db1' });
    const { all, pages } = await allPages<Key & { enrollment: number }>(
      admin,
      `/api/v1/api-keys?enrollment=${rack.id}&limit=2`,
    );
    assert.deepEqual(
      [pages, ...all.map(({ name, enrollment }) => `${name} ${enrollment}`)],
      [2, 'www1 1', 'www2 1', 'www3 1'],
    );
    assert.deepEqual(await expect(200, 'GET', '/api/v1/api-keys?enrollment=99'), []);
    for (const wrong of ['0', 'x', '-1']) await expect(400, 'GET', `/api/v1/api-keys?enrollment=${wrong}`);
  });
});

suite('revoking an enrollment', () => {
  test('stops its token immediately, alone or with its keys, and repeating it changes nothing', async (t) => {
    const { server, expect } = await administration(t, { trustedProxies: '127.0.0.1' });
    await makeCertificate(server.vault, 'www');
    const { id, token } = await makeEnrollment(server.vault, { uses: 3 });
    const other = await makeKey(server.vault, { name: 'by hand' });
    const machines: Key[] = [];
    for (const host of ['www1', 'www2']) machines.push((await exchange<Key>(server, token, { host })).json);
    const statuses = () =>
      Promise.all(
        [...machines.map(({ key }) => key), other.raw].map(
          async (key) => (await server.get('/api/v1/certificates/www', key)).status,
        ),
      );
    const alone = await expect<Enrollment>(200, 'POST', `${path}/${id}/revoke`, {});
    assert.deepEqual([alone.state, alone.revoked_api_keys], ['revoked', 0]);
    assert.equal((await exchange(server, token, { host: 'www3' })).status, 409);
    assert.deepEqual(await statuses(), [200, 200, 200]);
    server.world.advance(60_000);
    const both = await expect<Enrollment>(200, 'POST', `${path}/${id}/revoke`, { api_keys: true });
    assert.deepEqual([both.revoked_at, both.revoked_api_keys], [alone.revoked_at, 2]);
    assert.deepEqual(await statuses(), [401, 401, 200]);
    const again = await expect<Enrollment>(200, 'POST', `${path}/${id}/revoke`, { api_keys: true });
    assert.equal(again.revoked_api_keys, 0);
    assert.deepEqual(
      eventsOf(server.dataDir, 'enrollment.revoke').map(({ actor, resource }) => [actor, resource]),
      [['admin:alice', 'enrollment:1']],
    );
    assert.deepEqual(
      eventsOf(server.dataDir, 'api_key.revoke').map(({ actor, resource }) => [actor, resource]),
      machines.map((key) => ['admin:alice', `api-key:${key.id}`]),
    );
  });

  test('revokes more keys than one transaction does', async (t) => {
    const { server, expect } = await administration(t, { trustedProxies: '127.0.0.1' });
    const { id, token } = await makeEnrollment(server.vault, { uses: 101 });
    for (let n = 1; n <= 101; n += 1) {
      assert.equal((await exchange(server, token, { host: `node${n}` })).status, 201);
    }
    const revoked = await expect<Enrollment>(200, 'POST', `${path}/${id}/revoke`, { api_keys: true });
    assert.equal(revoked.revoked_api_keys, 101);
    const keys = await expect<Key[]>(200, 'GET', `/api/v1/api-keys?enrollment=${id}&limit=500`);
    assert.deepEqual([keys.length, new Set(keys.map(({ state }) => state))], [101, new Set(['revoked'])]);
  });

  test('is required before an enrollment whose token still works can be deleted; its keys stay', async (t) => {
    const { server, expect } = await administration(t, { trustedProxies: '127.0.0.1' });
    const { id, token } = await makeEnrollment(server.vault, { uses: 2 });
    const { json } = await exchange<Key>(server, token);
    const { code, detail } = await expect<Problem>(409, 'DELETE', `${path}/${id}`);
    assert.equal(code, 'enrollment_active');
    assert.match(detail, /^Enrollment 1 \(rack\) is active; revoke it before you delete it\./);
    await expect(200, 'POST', `${path}/${id}/revoke`, {});
    await expect(204, 'DELETE', `${path}/${id}`);
    assert.deepEqual(await expect(200, 'GET', path), []);
    assert.equal((await server.get('/api/v1/whoami', json.key)).status, 200);
    assert.equal(eventsOf(server.dataDir, 'enrollment.delete')[0]?.actor, 'admin:alice');
    assert.equal((await exchange(server, token)).status, 401, 'a deleted token is an unknown one');
    const next = await makeEnrollment(server.vault, { name: 'next' });
    assert.equal(next.id, id + 1, 'the id is not used for another, whose keys would be mixed up');
    for (const wrong of [id, 0, '01', 'x', '1.0', '9'.repeat(30)]) {
      assert.equal((await expect<Problem>(404, 'GET', `${path}/${wrong}`)).code, 'enrollment_not_found');
      await expect(404, 'POST', `${path}/${wrong}/revoke`, {});
      await expect(404, 'DELETE', `${path}/${wrong}`);
    }
  });
});

/** People with a role, and with the reach `team=web`, at a server with certificates within and outside of it. */
async function confined(t: TestContext) {
  const server = await checkedServer(t, {
    trustedProxies: '127.0.0.1',
    administrators: { 'token-of-operator': 'olga', 'token-of-viewer': 'vera', 'token-of-admin': 'ada' },
    roles: { olga: 'operator', vera: 'viewer', ada: 'admin' },
    reaches: { olga: ['team=web'], vera: ['team=web'] },
  });
  await makeCertificate(server.vault, 'shop', undefined, { labels: ['team=web'] });
  await makeCertificate(server.vault, 'ledger', undefined, { labels: ['team=db'] });
  const ask = async (role: Role, method: string, target: string, body?: unknown) => {
    const response = await server.get(target, undefined, {
      method,
      headers: {
        ...{ 'Sec-Fetch-Site': 'same-origin', Cookie: `vault_session=token-of-${role}` },
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
  };
  return { server, ask };
}

suite('an operator whose reach is one team', () => {
  const body = {
    ...{ certificates: ['shop'], scopes: ['certificates:read'], labels: ['team=web'] },
    expires_at: usual.expires_at,
  };

  test('creates enrollments with no more rights than the role and the reach have, and attempts are recorded', async (t) => {
    const { server, ask } = await confined(t);
    const wrong: readonly (readonly [change: object, detail: RegExp])[] = [
      [{ certificates: ['ledger'] }, /^A key cannot get the certificate ledger from you/],
      [{ certificates: ['*'] }, /^A key cannot get the certificate \* from you/],
      [{ certificate_labels: ['team=db'] }, /^the label team=db is outside yours/],
      [{ labels: [] }, /^What you create needs a label of your reach/],
      [{ scopes: ['private_keys:read'] }, /^A key cannot get the scope private_keys:read from you/],
      [{ scopes: undefined }, /^A key cannot get the scope private_keys:read from you/],
    ];
    for (const [change, detail] of wrong) {
      const { status, json } = await ask('operator', 'POST', path, { ...body, ...change });
      assert.equal(status, 403, JSON.stringify(change));
      assert.match((json as Problem).detail, detail);
    }
    assert.deepEqual(eventsOf(server.dataDir, 'enrollment.create'), []);
    assert.deepEqual(
      eventsOf(server.dataDir, 'access.refuse').map(({ actor, detail }) => [actor, detail.reason]),
      wrong.map(() => ['admin:olga', 'more rights than its own']),
    );
    assert.equal((await ask('operator', 'POST', path, body)).status, 201);
  });

  test('sees and revokes only enrollments and keys with a label of the reach, and deletes none', async (t) => {
    const { server, ask } = await confined(t);
    const ours = await makeEnrollment(server.vault, { name: 'ours', labels: ['team=web'], uses: 3 });
    const theirs = await makeEnrollment(server.vault, { name: 'theirs', labels: ['team=db'] });
    const keys: Key[] = [];
    for (const host of ['www1', 'www2']) keys.push((await exchange<Key>(server, ours.token, { host })).json);
    // An administrator gave this key to another team.
    const moved = `/api/v1/api-keys/${keys[1]?.id}`;
    assert.equal((await ask('admin', 'PATCH', moved, { labels: ['team=db'] })).status, 200);
    const listed = (await ask('viewer', 'GET', path)).json as Enrollment[];
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['ours'],
    );
    assert.equal((await ask('viewer', 'GET', `${path}/${ours.id}`)).status, 200);
    assert.equal((await ask('viewer', 'GET', `${path}/${theirs.id}`)).status, 403);
    assert.equal((await ask('viewer', 'POST', `${path}/${ours.id}/revoke`, {})).status, 403);
    assert.equal((await ask('operator', 'POST', `${path}/${theirs.id}/revoke`, {})).status, 403);
    const revoked = await ask('operator', 'POST', `${path}/${ours.id}/revoke`, { api_keys: true });
    assert.deepEqual([revoked.status, (revoked.json as Enrollment).revoked_api_keys], [200, 1]);
    assert.equal((await server.get('/api/v1/whoami', keys[0]?.key)).status, 401);
    assert.equal((await server.get('/api/v1/whoami', keys[1]?.key)).status, 200);
    assert.equal((await ask('operator', 'DELETE', `${path}/${ours.id}`)).status, 403);
    assert.equal((await ask('admin', 'DELETE', `${path}/${ours.id}`)).status, 204);
  });
});

test('an API key with a role creates enrollments whose keys work from its own networks only', async (t) => {
  const server = await checkedServer(t, { trustedProxies: '127.0.0.1' });
  const ci = await makeKey(server.vault, {
    ...{ name: 'ci', role: 'operator', scopes: ['certificates:read'] },
    ...{ allowed_networks: ['192.0.2.0/24'], expires_at: '2028-01-01T00:00:00Z' },
  });
  const create = async (change: object) => {
    const response = await server.get(path, ci.raw, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '192.0.2.7' },
      body: JSON.stringify({ ...usual, scopes: ['certificates:read'], ...change }),
    });
    const json = (await response.json()) as Problem;
    return response.status === 201 ? 201 : json.detail.split(' from you')[0];
  };
  const inside = { allowed_networks: ['192.0.2.128/25'] };
  assert.equal(await create({}), 'A key cannot get the network *');
  assert.equal(
    await create({ allowed_networks: ['198.51.100.0/24'] }),
    'A key cannot get the network 198.51.100.0/24',
  );
  assert.equal(await create(inside), 'A key cannot get an expiry after 2028-01-01T00:00:00Z');
  assert.equal(await create({ ...inside, key_expires_at: '2027-06-01T00:00:00Z' }), 201);
});
