/** http-01 challenges over the vault's own listener, for any host name, and from any process. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { deleteChallengeRow } from '../../../src/db/tables/issuance/acme-challenges.ts';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { checkedServer, codeOf } from '../../harness/http/checked.ts';
import { converse, parseReply } from '../../harness/http/raw.ts';
import { testVault } from '../../harness/test-vault.ts';

const path = '/.well-known/acme-challenge';
const token = 'evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr_oA';
const answer = `${token}.nP1qzpXGymHBrUEepNY9HCsQk7K8KhOypzEt62jcerQ`;
const http = { type: 'http-01', identifier: 'www.example.test', token, key_authorization: answer };

suite('an http-01 challenge', () => {
  test('returns its key authorization without credentials until it is removed', async (t) => {
    const server = await checkedServer(t);
    assert.equal((await server.get(`${path}/${token}`)).status, 404);
    const { id } = await putChallenge(server.vault, http);
    const response = await server.get(`${path}/${token}`);
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('Content-Type'), 'application/octet-stream');
    assert.equal(response.headers.get('Cache-Control'), 'no-store');
    assert.equal(await response.text(), answer);
    const head = await server.get(`${path}/${token}`, undefined, { method: 'HEAD' });
    assert.deepEqual([head.status, head.headers.get('Content-Length')], [200, String(answer.length)]);
    await server.vault.db.write((writer) => deleteChallengeRow(writer, id));
    const gone = await server.get(`${path}/${token}`);
    assert.deepEqual([gone.status, await codeOf(gone)], [404, 'not_found']);
  });

  test('is served for any Host header when a public URL is set', async (t) => {
    const server = await checkedServer(t, { publicUrl: 'https://vault.example.test' });
    await putChallenge(server.vault, http);
    for (const host of ['www.example.test', 'www.example.test:80', '192.0.2.7', '[2001:db8::7]', 'a_b', '']) {
      const text = `GET ${path}/${token} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;
      const { status, body } = parseReply(await converse(server.url, text));
      assert.deepEqual([status, body], [200, answer], host);
    }
  });

  test('is served when another process created it', async (t) => {
    const server = await checkedServer(t);
    const other = await testVault(t, { dataDir: server.dataDir, world: server.world });
    await putChallenge(other.vault, http);
    assert.equal(await (await server.get(`${path}/${token}`)).text(), answer);
  });

  test('returns 404 for tokens that are not base64url, without a database query', async (t) => {
    const server = await checkedServer(t);
    for (const odd of ['a.b', 'a b', 'a+b', 'a=', "a'--", 'é', '../x', 'a/b', '%', '\0']) {
      await putChallenge(server.vault, { ...http, token: odd });
    }
    const asked = t.mock.method(server.vault.db.reader, 'selectFrom');
    for (const odd of ['a.b', 'a%20b', 'a+b', 'a=', "a'--", '%C3%A9', '..%2Fx', 'a%2Fb', '%25', '%00']) {
      assert.equal((await server.raw('GET', `${path}/${odd}`)).status, 404, odd);
    }
    assert.equal(asked.mock.callCount(), 0);
    assert.equal((await server.raw('GET', `${path}/`)).status, 404);
    assert.equal((await server.raw('GET', path)).status, 404);
  });

  test('returns 404 for the token of a dns-01 or tls-alpn-01 challenge', async (t) => {
    const server = await checkedServer(t);
    for (const type of ['dns-01', 'tls-alpn-01']) await putChallenge(server.vault, { ...http, type });
    assert.equal((await server.get(`${path}/${token}`)).status, 404);
  });

  test('returns 405 for POST', async (t) => {
    const server = await checkedServer(t);
    await putChallenge(server.vault, http);
    const response = await server.get(`${path}/${token}`, undefined, { method: 'POST' });
    assert.deepEqual([response.status, response.headers.get('Allow')], [405, 'GET, HEAD']);
  });
});
