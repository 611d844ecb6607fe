/** The setup link: once, for a day, for the first administrator, and one answer for everything that is not that. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { viewAdministrators } from '../../../../src/domain/access/administrators.ts';
import { offerSetup } from '../../../../src/domain/access/setup.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { outside } from '../../../harness/database/outside-database.ts';
import { type CheckedServer, checkedServer } from '../../../harness/http/checked.ts';
import { eventsOf } from '../../../harness/http/fixtures.ts';
import {
  cookieOf,
  fromPage,
  goodPassword,
  makeAdministrator,
  pageWith,
} from '../../../harness/http/sign-in-fixtures.ts';

const day = 86_400_000;

const setUp = (server: CheckedServer, token: unknown, rest: object = {}) =>
  server.get(
    '/api/v1/setup',
    undefined,
    fromPage('POST', { token, name: 'alice', password: goodPassword, ...rest }),
  );

async function offered(server: CheckedServer): Promise<string> {
  const token = await offerSetup(server.vault, localCli);
  assert(token !== undefined);
  return token.expose();
}

async function assertNotValid(response: Response): Promise<void> {
  assert.equal(response.status, 403);
  assert.deepEqual(response.headers.getSetCookie(), []);
  assert.deepEqual(await response.json(), {
    status: 403,
    code: 'forbidden',
    detail:
      'This setup link is invalid: it was used, has expired or was replaced by a newer one. ' +
      'Create a new one on the host of the vault: vault admin setup-link',
  });
}

suite('a setup link', () => {
  test('gets the same 403 response if unknown, replaced or expired, and creates no administrator', async (t) => {
    const server = await checkedServer(t);
    await assertNotValid(await setUp(server, 'x'));
    const replaced = await offered(server);
    const token = await offered(server);
    for (const wrong of ['', 'x', replaced, token.slice(0, -1), `${token}x`, token.toLowerCase()]) {
      await assertNotValid(await setUp(server, wrong));
    }
    server.world.advance(day);
    await assertNotValid(await setUp(server, token));
    assert.deepEqual(await viewAdministrators(server.vault), []);
    const [event] = eventsOf(server.dataDir, 'session.refuse');
    assert.deepEqual([event?.actor, event?.resource], ['anonymous', 'setup']);
    const told = server.log.lines.join() + JSON.stringify(eventsOf(server.dataDir, 'session.refuse'));
    assert(!told.includes(token) && !told.includes(replaced));
  });

  test('stays valid after a rejected name or password, and the response does not echo the password', async (t) => {
    const server = await checkedServer(t);
    const token = await offered(server);
    for (const rest of [
      { password: 'password1234' },
      { password: 'short' },
      { name: 'alice-in-wonderland', password: 'alice-in-wonderland' },
      { name: '' },
      { name: 'a b' },
      { name: 'a'.repeat(65) },
      { name: '<script>' },
      { token: 7 },
      { more: true },
    ]) {
      const response = await setUp(server, token, rest);
      assert.equal(response.status, 400, JSON.stringify(rest));
      assert.doesNotMatch(await response.text(), /password1234|correct horse/);
    }
    assert.equal((await setUp(server, token)).status, 201);
  });

  test('is checked before the password', async (t) => {
    const server = await checkedServer(t);
    await offered(server);
    await assertNotValid(await setUp(server, 'wrong', { password: 'short' }));
  });

  test('creates the first administrator and signs them in', async (t) => {
    const server = await checkedServer(t);
    const response = await setUp(server, await offered(server));
    assert.equal(response.status, 201);
    assert.equal(((await response.clone().json()) as { name: string }).name, 'alice');
    const { send } = pageWith(server, cookieOf(response));
    assert.equal((await send('GET', '/api/v1/session')).status, 200);
    const [made] = eventsOf(server.dataDir, 'administrator.create');
    assert.deepEqual(
      [made?.actor, made?.resource, made?.ip],
      ['admin:alice', 'administrator:alice', '127.0.0.1'],
    );
    assert.equal(eventsOf(server.dataDir, 'session.create').length, 1);
  });

  test('works once, even for concurrent requests', async (t) => {
    const server = await checkedServer(t);
    const token = await offered(server);
    const both = await Promise.all(['alice', 'bob'].map((name) => setUp(server, token, { name })));
    assert.deepEqual(both.map(({ status }) => status).toSorted(), [201, 403]);
    await assertNotValid(await setUp(server, token, { name: 'carol' }));
    assert.equal((await viewAdministrators(server.vault)).length, 1);
  });

  test('expires when an administrator is created another way, and no new link is offered', async (t) => {
    const server = await checkedServer(t);
    const token = await offered(server);
    await makeAdministrator(server.vault, 'alice');
    await assertNotValid(await setUp(server, token, { name: 'bob' }));
    assert.equal(await offerSetup(server.vault, localCli), undefined);
    const keys = outside(server.dataDir, (db) =>
      db.prepare("select count(*) from settings where key like 'setup%'").pluck().get(),
    );
    assert.equal(keys, 0);
  });

  test('is not stored in plain text', async (t) => {
    const server = await checkedServer(t);
    const token = await offered(server);
    const rows = outside(server.dataDir, (db) => db.prepare('select key, value from settings').all());
    assert(!JSON.stringify(rows).includes(token));
    assert(!JSON.stringify(rows).includes(JSON.stringify([...Buffer.from(token)]).slice(1, -1)));
  });

  test('is rate limited after twenty wrong guesses', async (t) => {
    const server = await checkedServer(t);
    const token = await offered(server);
    for (let n = 0; n < 20; n += 1) await assertNotValid(await setUp(server, `guess-${n}`));
    const limited = await setUp(server, token);
    assert.deepEqual([limited.status, limited.headers.get('Retry-After')], [429, '1']);
    server.world.advance(1000);
    assert.equal((await setUp(server, token)).status, 201);
  });
});
