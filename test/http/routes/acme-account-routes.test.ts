/** ACME accounts as an administrator sees and deletes them; everybody else is refused in access.test.ts. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { StorageError } from '../../../src/base/storage-error.ts';
import { alice, directory, makeAccount, makeIssuer } from '../../harness/http/acme-fixtures.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';

const list = '/api/v1/acme-accounts';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t, { administrators: alice.administrators });
  const ask = (path: string, method = 'GET') => server.get(path, undefined, { ...alice.init, method });
  const ids = async (path = list) =>
    ((await (await ask(path)).json()) as { id: string }[]).map(({ id }) => id);
  return { server, ask, ids };
}

suite('the list of ACME accounts', () => {
  test('is empty in a new vault', async (t) => {
    const { ask } = await prepared(t);
    const response = await ask(list);
    assert.deepEqual([response.status, await response.json()], [200, []]);
    assert.equal(response.headers.get('Cache-Control'), 'no-store');
  });

  test('contains the directory URL, issuers and status of each account without key material', async (t) => {
    const { server, ask } = await prepared(t);
    const [used, left] = [
      await makeAccount(server.vault),
      await makeAccount(server.vault, { issuer: 'old', email: null, status: 'deactivated' }),
    ];
    await makeIssuer(server.vault, 'second', used);
    await makeIssuer(server.vault, 'first', used);
    const text = await (await ask(list)).text();
    const usual = { directory_url: directory, created_at: '2026-11-21T12:00:00Z' };
    assert.deepEqual(JSON.parse(text), [
      {
        id: String(used),
        issuer: 'first, second',
        email: 'ops@example.test',
        status: 'valid',
        current: true,
        ...usual,
      },
      { id: String(left), issuer: 'old', email: null, status: 'deactivated', current: false, ...usual },
    ]);
    assert.doesNotMatch(text, /sealed|key/);
  });

  test('comes in pages that link to the next', async (t) => {
    const { server, ask, ids } = await prepared(t);
    const all: string[] = [];
    for (let count = 0; count < 5; count += 1) all.push(String(await makeAccount(server.vault)));
    const pages: string[][] = [];
    let path: string | undefined = `${list}?limit=2`;
    while (path !== undefined) {
      assert(pages.length < 5);
      const response: Response = await ask(path);
      pages.push(((await response.json()) as { id: string }[]).map(({ id }) => id));
      const next: string | undefined = /^<([^>]+)>; rel="next"$/.exec(
        response.headers.get('Link') ?? '',
      )?.[1];
      path = next?.slice(server.url.length);
    }
    assert.deepEqual(pages, [all.slice(0, 2), all.slice(2, 4), all.slice(4)]);
    assert.deepEqual(await ids(`${list}?after=${all[1]}`), all.slice(2));
    for (const query of ['limit=0', 'limit=1001', 'after=x', 'nonsense=1']) {
      assert.equal((await ask(`${list}?${query}`)).status, 400, query);
    }
  });
});

suite('the deletion of an ACME account', () => {
  test('returns 204, removes the account and records the administrator', async (t) => {
    const { server, ask, ids } = await prepared(t);
    const [gone, other] = [await makeAccount(server.vault), await makeAccount(server.vault)];
    const response = await ask(`${list}/${gone}`, 'DELETE');
    assert.deepEqual([response.status, await response.text()], [204, '']);
    assert.deepEqual(await ids(), [String(other)]);
    assert.deepEqual(eventsOf(server.dataDir, 'acme_account.delete'), [
      {
        actor: 'admin:alice',
        action: 'acme_account.delete',
        resource: `acme-account:${gone}`,
        detail: {
          issuer: 'first',
          directory_url: directory,
          account_url: 'https://ca.example.test/account/1',
          email: 'ops@example.test',
        },
        ip: '127.0.0.1',
        request_id: response.headers.get('X-Request-Id'),
      },
    ]);
    assert.equal((await ask(`${list}/${gone}`, 'DELETE')).status, 404, 'a second time there is nothing');
    assert.equal(eventsOf(server.dataDir, 'acme_account.delete').length, 1);
  });

  test('returns 409 and reports the issuer while an issuer uses the account', async (t) => {
    const { server, ask, ids } = await prepared(t);
    const id = await makeAccount(server.vault);
    await makeIssuer(server.vault, 'letsencrypt', id);
    const response = await ask(`${list}/${id}`, 'DELETE');
    const { code, detail } = (await response.json()) as { code: string; detail: string };
    assert.deepEqual([response.status, code], [409, 'acme_account_current']);
    assert.match(detail, /letsencrypt/);
    assert.deepEqual(await ids(), [String(id)]);
    assert.deepEqual(eventsOf(server.dataDir, 'acme_account.delete'), []);
  });

  test('returns 404 for unknown and malformed ids', async (t) => {
    const { server, ask, ids } = await prepared(t);
    const id = await makeAccount(server.vault);
    const wrong = [
      '999',
      '0',
      '-1',
      `0${id}`,
      `${id}.0`,
      `${id}e0`,
      `+${id}`,
      'x',
      '%20',
      `${id}%20`,
      '9'.repeat(40),
    ];
    for (const text of wrong) {
      const response = await ask(`${list}/${text}`, 'DELETE');
      assert.deepEqual([response.status, await codeOf(response)], [404, 'acme_account_not_found'], text);
    }
    assert.deepEqual(await ids(), [String(id)]);
  });

  test('returns 503 and keeps the account when the database write fails', async (t) => {
    const { server, ask, ids } = await prepared(t);
    const id = await makeAccount(server.vault);
    const mock = t.mock.method(server.vault.db, 'write', async () => {
      throw new StorageError('the disk with the database is full');
    });
    const response = await ask(`${list}/${id}`, 'DELETE');
    assert.deepEqual([response.status, await codeOf(response)], [503, 'unavailable']);
    mock.mock.restore();
    assert.deepEqual(await ids(), [String(id)]);
  });

  test('is the only method on one account, and GET returns 405', async (t) => {
    const { ask } = await prepared(t);
    const response = await ask(`${list}/1`);
    assert.deepEqual([response.status, response.headers.get('Allow')], [405, 'DELETE']);
  });
});
