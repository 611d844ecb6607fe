/** What the API says about the vault's own HTTPS, and what follows from it in replies and cookies. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request } from 'node:https';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { makeCertificate, makeKey, renewCertificate } from '../../harness/http/fixtures.ts';
import { visit } from '../../harness/http/https-client.ts';
import { httpsServer, untilSeen } from '../../harness/http/https-fixtures.ts';
import { goodPassword, makeAdministrator } from '../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../harness/http/test-server.ts';

const overHttps = { ...alice.init.headers, Cookie: '__Host-vault_session=token-of-alice' };

suite('GET /api/v1/about', () => {
  test('returns the served certificate and its pin to administrators', async (t) => {
    const server = await httpsServer(t, { administrators: alice.administrators });
    const { body, pin } = await visit(`${server.url}/api/v1/about`, { headers: overHttps });
    assert.deepEqual(JSON.parse(body).tls, {
      source: 'certificate',
      certificate: 'vault',
      publicly_trusted: false,
      pin,
    });
  });

  test('returns null for tls over plain HTTP', async (t) => {
    const server = await testServer(t, { administrators: alice.administrators });
    const response = await server.get('/api/v1/about', undefined, alice.init);
    assert.equal(((await response.json()) as { tls: unknown }).tls, null);
  });
});

suite('over HTTPS, without a public URL', () => {
  test('URLs in replies begin with https', async (t) => {
    const server = await httpsServer(t);
    await makeCertificate(server.vault, 'web');
    const { raw } = await makeKey(server.vault);
    const headers = { Authorization: `Bearer ${raw}` };
    const { body } = await visit(`${server.url}/api/v1/certificates/web`, { headers });
    const urls = (JSON.parse(body).artifacts as { url: string }[]).map(({ url }) => url);
    assert(urls.length > 0);
    for (const url of urls) assert(url.startsWith(`${server.url}/api/v1/certificates/web/`), url);
  });

  test('the session cookie is Secure with the __Host- prefix, and is rejected without the prefix', async (t) => {
    const server = await httpsServer(t);
    await makeAdministrator(server.vault, 'alice');
    const session = `${server.url}/api/v1/session`;
    const page = { Origin: server.url, 'Content-Type': 'application/json' };
    const body = JSON.stringify({ name: 'alice', password: goodPassword });
    const signedIn = await visit(session, { method: 'POST', headers: page, body });
    assert.equal(signedIn.status, 201, signedIn.body);
    const [cookie = ''] = signedIn.headers['set-cookie'] ?? [];
    assert.match(cookie, /^__Host-vault_session=.+; Path=\/; HttpOnly; SameSite=Strict; Secure$/);
    const [pair = ''] = cookie.split(';');
    assert.equal((await visit(session, { headers: { Cookie: pair } })).status, 200);
    const unmarked = { Cookie: pair.replace('__Host-', '') };
    assert.equal((await visit(session, { headers: unmarked })).status, 401);
    const ended = await visit(session, { method: 'DELETE', headers: { ...page, Cookie: pair } });
    assert.equal(ended.status, 204);
    assert.match(ended.headers['set-cookie']?.[0] ?? '', /^__Host-vault_session=; Max-Age=0; .*; Secure$/);
  });

  test('a change from a plain HTTP page of the same host gets 403', async (t) => {
    const server = await httpsServer(t, { administrators: alice.administrators });
    const sent = (origin: string) =>
      visit(`${server.url}/api/v1/sessions/7`, {
        method: 'DELETE',
        headers: { Cookie: overHttps.Cookie, Origin: origin },
      });
    assert.equal((await sent(server.url.replace('https:', 'http:'))).status, 403);
    assert.equal((await sent(server.url)).status, 404);
  });
});

suite('a certificate renewal under load', () => {
  test('fails no download, drops no connection, and serves the new certificate to the next one', async (t) => {
    const server = await httpsServer(t);
    await makeCertificate(server.vault, 'web');
    const { raw } = await makeKey(server.vault);
    const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
    t.after(() => agent.destroy());
    const connections = new Set<unknown>();
    const statuses = new Map<number | undefined, number>();
    let isOver = false;
    const download = async (file: string) => {
      const path = `/api/v1/certificates/web/${file}`;
      const asked = request(server.url + path, { agent, headers: { Authorization: `Bearer ${raw}` } });
      asked.end();
      const [response] = await once(asked, 'response');
      connections.add(response.socket);
      assert.match(await text(response), /^-----BEGIN [A-Z ]+-----\n[\s\S]+-----END [A-Z ]+-----\n$/);
      statuses.set(response.statusCode, (statuses.get(response.statusCode) ?? 0) + 1);
    };
    const clients = ['private.key', 'fullchain.crt', 'private.key', 'chain.crt'].map(async (file) => {
      while (!isOver) await download(file);
    });
    const serials = new Set<string>();
    for (let swap = 0; swap < 5; swap++) {
      const { leaf } = await visit(`${server.url}/api/v1/health`);
      serials.add(leaf.serialNumber);
      await renewCertificate(server.vault, 'vault');
      const done = statuses.get(200) ?? 0;
      await untilSeen(server, async () => {
        const now = await visit(`${server.url}/api/v1/health`);
        return now.leaf.serialNumber === leaf.serialNumber ? undefined : true;
      });
      while ((statuses.get(200) ?? 0) < done + 20) await server.world.turn();
    }
    isOver = true;
    await Promise.all(clients);
    assert.equal(serials.size, 5);
    assert.deepEqual([...statuses.keys()], [200]);
    assert.equal(connections.size, clients.length, 'each client kept its connection all the time');
  });
});
