/** Administrators over HTTP: made, listed and removed by one another, but never the last one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { outside } from '../../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer, codeOf } from '../../../harness/http/checked.ts';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import {
  goodPassword,
  makeAdministrator,
  otherPassword,
  signIn,
} from '../../../harness/http/sign-in-fixtures.ts';

async function withAlice(t: Parameters<typeof checkedServer>[0]) {
  const server: CheckedServer = await checkedServer(t);
  await makeAdministrator(server.vault, 'alice');
  return { server, alice: await signIn(server, 'alice') };
}

test('creating an administrator with a taken name returns 409, regardless of case', async (t) => {
  const { alice } = await withAlice(t);
  for (const name of ['alice', 'ALICE']) {
    const response = await alice.send('POST', '/api/v1/administrators', { name, password: goodPassword });
    assert.deepEqual([response.status, await codeOf(response)], [409, 'administrator_exists']);
  }
});

test('creating an administrator with a bad name or password returns 400 without echoing the password', async (t) => {
  const { alice } = await withAlice(t);
  for (const body of [
    { name: 'bob', password: 'password1234' },
    { name: 'bob', password: 'password123' },
    { name: 'bob/../alice', password: goodPassword },
    { name: ' bob', password: goodPassword },
    { password: goodPassword },
    { name: 'bob', password: goodPassword, admin: true },
  ]) {
    const response = await alice.send('POST', '/api/v1/administrators', body);
    assert.equal(response.status, 400, JSON.stringify(body));
    assert.doesNotMatch(await response.text(), /password123|correct horse/);
  }
});

test('deleting the last administrator returns 409, and an unknown one 404', async (t) => {
  const { alice } = await withAlice(t);
  const last = await alice.send('DELETE', '/api/v1/administrators/alice');
  assert.deepEqual([last.status, await codeOf(last)], [409, 'last_administrator']);
  const absent = await alice.send('DELETE', '/api/v1/administrators/bob');
  assert.deepEqual([absent.status, await codeOf(absent)], [404, 'administrator_not_found']);
  assert.equal((await alice.send('GET', '/api/v1/session')).status, 200);
});

test('an administrator created by another can sign in, is listed without the hash, and can be removed', async (t) => {
  const { server, alice } = await withAlice(t);
  const body = { name: 'bob', password: otherPassword };
  const made = await alice.send('POST', '/api/v1/administrators', body);
  assert.equal(made.status, 201);
  assert.doesNotMatch(await made.text(), /argon2|several/);
  const bob = await signIn(server, 'bob', otherPassword);
  const list = await (await bob.send('GET', '/api/v1/administrators')).text();
  assert.deepEqual(
    (JSON.parse(list) as { name: string }[]).map(({ name }) => name),
    ['alice', 'bob'],
  );
  assert(!list.includes('argon2'));
  assert.equal((await alice.send('DELETE', '/api/v1/administrators/Bob')).status, 204);
  assert.equal((await bob.send('GET', '/api/v1/session')).status, 401);
  const events = ['administrator.create', 'administrator.delete'].flatMap((action) =>
    eventsOf(server.dataDir, action),
  );
  assert.deepEqual(
    events.map(({ actor, resource, detail }) => [actor, resource, detail]),
    [
      ['local-cli', 'administrator:alice', {}],
      ['admin:alice', 'administrator:bob', {}],
      ['admin:alice', 'administrator:bob', { sessions_ended: 1 }],
    ],
  );
});

test('administrators may remove themselves while another administrator exists', async (t) => {
  const { server, alice } = await withAlice(t);
  await makeAdministrator(server.vault, 'bob');
  assert.equal((await alice.send('DELETE', '/api/v1/administrators/alice')).status, 204);
  assert.equal((await alice.send('GET', '/api/v1/administrators')).status, 403);
});

test('the administrators table holds an Argon2id hash, and the password is not stored or logged', async (t) => {
  const { server } = await withAlice(t);
  const rows = outside(server.dataDir, (db) => db.prepare('select password_hash from administrators').all());
  assert.match(JSON.stringify(rows), /\$argon2id\$v=19\$/);
  assert.doesNotMatch(JSON.stringify(rows) + server.log.lines.join(), /correct horse/);
});

test('a changed role counts at the next request of an open session', async (t) => {
  const { server, alice } = await withAlice(t);
  await makeAdministrator(server.vault, 'bob', otherPassword, 'viewer');
  const bob = await signIn(server, 'bob', otherPassword);
  const key = { name: 'ci', scopes: ['certificates:read'], certificates: ['*'] };
  const create = async (name: string) =>
    (await bob.send('POST', '/api/v1/api-keys', { ...key, name })).status;
  const session = async () =>
    ((await (await bob.send('GET', '/api/v1/session')).json()) as { role: string }).role;
  assert.deepEqual([await create('one'), await session()], [403, 'viewer']);
  const changed = await alice.send('PATCH', '/api/v1/administrators/bob', { role: 'operator' });
  assert.equal(changed.status, 200);
  assert.equal(((await changed.json()) as { role: string }).role, 'operator');
  assert.deepEqual([await create('two'), await session()], [201, 'operator']);
  assert.equal((await bob.send('PATCH', '/api/v1/administrators/bob', { role: 'admin' })).status, 403);
  await alice.send('PATCH', '/api/v1/administrators/bob', { role: 'viewer' });
  assert.equal(await create('three'), 403);
  const [first, second] = eventsOf(server.dataDir, 'administrator.update');
  assert.deepEqual(
    [first?.actor, first?.detail, second?.detail.role],
    ['admin:alice', { role: 'operator', before: { role: 'viewer' } }, 'viewer'],
  );
});

test('the last administrator with the role admin keeps it, and cannot be deleted', async (t) => {
  const { server, alice } = await withAlice(t);
  await makeAdministrator(server.vault, 'bob', otherPassword, 'operator');
  for (const [method, body] of [
    ['PATCH', { role: 'operator' }],
    ['DELETE', undefined],
  ] as const) {
    const response = await alice.send(method, '/api/v1/administrators/alice', body);
    assert.deepEqual([response.status, await codeOf(response)], [409, 'last_administrator'], method);
  }
  assert.equal((await alice.send('PATCH', '/api/v1/administrators/bob', { role: 'admin' })).status, 200);
  assert.equal((await alice.send('PATCH', '/api/v1/administrators/alice', { role: 'viewer' })).status, 200);
});

test('an administrator with an unknown role is refused', async (t) => {
  const { alice } = await withAlice(t);
  const body = { name: 'bob', password: goodPassword, role: 'root' };
  assert.equal((await alice.send('POST', '/api/v1/administrators', body)).status, 400);
  assert.equal((await alice.send('PATCH', '/api/v1/administrators/alice', { role: null })).status, 400);
  assert.equal((await alice.send('PATCH', '/api/v1/administrators/bob', { role: 'viewer' })).status, 404);
});
