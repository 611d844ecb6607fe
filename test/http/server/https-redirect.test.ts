/** The plain listener of a vault that speaks HTTPS: it answers http-01 and sends people on, but never a key. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { serverContext } from '../../../src/http/server/listener-context.ts';
import { startListeners } from '../../../src/http/server/listeners.ts';
import { TlsEndpoint } from '../../../src/http/tls/tls-endpoint.ts';
import { putChallenge } from '../../harness/http/acme-fixtures.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { ownSource } from '../../harness/http/https-fixtures.ts';
import { converse, parseReply } from '../../harness/http/raw.ts';
import { freePorts } from '../../harness/processes/port.ts';
import { testVault } from '../../harness/test-vault.ts';

/** The listeners of `vault serve --tls-certificate vault --acme-http-listen …`. */
async function listening(t: TestContext, publicUrl?: string) {
  const { vault, log } = await testVault(t);
  const tls = await TlsEndpoint.open(vault, ownSource()(vault));
  const [port = 0] = await freePorts(1);
  const place = { host: '127.0.0.1', port: 0 };
  const server = await startListeners(serverContext(vault, { version: '0', publicUrl }), routes, {
    listen: place,
    tls,
    acmeHttpListen: { ...place, port },
    acmeTlsListen: undefined,
  });
  t.after(() => server.stop(0));
  return { vault, log, httpsPort: new URL(server.url).port, plain: `http://127.0.0.1:${port}` };
}

suite('plain HTTP beside HTTPS', () => {
  test('serves CRLs, without which a client cannot verify the certificate of HTTPS', async (t) => {
    const { plain } = await listening(t, 'https://vault.example.test');
    for (const path of ['/client/ca.crl', '/client/crls/1']) {
      const response = await fetch(plain + path, { redirect: 'manual' });
      assert.equal(response.status, 200, path);
      assert.equal(response.headers.get('Content-Type'), 'application/pkix-crl');
    }
  });

  test('is redirected to the public URL, or to the same host at the port for HTTPS', async (t) => {
    const named = await listening(t, 'https://vault.example.test:8443');
    const unnamed = await listening(t);
    const cases: [path: string, elsewhere: string][] = [
      ['/', '/'],
      ['/certificates/web?tab=versions', '/certificates/web?tab=versions'],
      ['/client/install.sh', '/client/install.sh'],
      ['/api/v1/health', '/api/v1/health'],
    ];
    for (const [path, elsewhere] of cases) {
      for (const method of ['GET', 'HEAD']) {
        const response = await fetch(named.plain + path, { method, redirect: 'manual' });
        assert.equal(response.status, 308, path);
        assert.equal(response.headers.get('Location'), `https://vault.example.test:8443${elsewhere}`);
        assert.equal(response.headers.get('Cache-Control'), 'no-store');
        assert.match(response.headers.get('X-Request-Id') ?? '', /./);
      }
      const response = await fetch(unnamed.plain + path, { redirect: 'manual' });
      assert.equal(response.headers.get('Location'), `https://127.0.0.1:${unnamed.httpsPort}${elsewhere}`);
    }
  });

  test('with credentials gets 400 with the advice to revoke the API key, and no redirect', async (t) => {
    const { plain, log } = await listening(t, 'https://vault.example.test');
    const raw = `vk_abcdefghijkl.${'s'.repeat(43)}`;
    for (const authorization of [`Bearer ${raw}`, 'Basic YTpi', '']) {
      const response = await fetch(`${plain}/api/v1/certificates/web/private.key`, {
        headers: { Authorization: authorization },
        redirect: 'manual',
      });
      const body = (await response.json()) as { code: string; detail: string };
      assert.equal(response.status, 400);
      assert.equal(response.headers.get('Location'), null);
      assert.equal(body.code, 'invalid_request');
      assert.match(
        body.detail,
        /credentials .* unencrypted\. Revoke the API key.* only with https:\/\/vault\.example\.test/,
      );
    }
    assert.doesNotMatch(log.lines.join('\n'), /vk_/);
  });

  test('gets 400 for methods other than GET and HEAD', async (t) => {
    const { plain } = await listening(t);
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      const response = await fetch(`${plain}/api/v1/session`, { method, redirect: 'manual' });
      assert.equal(response.status, 400, method);
      assert.match(((await response.json()) as { detail: string }).detail, /sent unencrypted/);
    }
  });

  test('is not redirected to another host by an invalid Host header or path', async (t) => {
    const { plain, httpsPort } = await listening(t);
    const cases: [host: string, location: string | null][] = [
      ['vault.example.test', `https://vault.example.test:${httpsPort}/x`],
      ['vault.example.test:80', `https://vault.example.test:${httpsPort}/x`],
      ['[::1]:80', `https://[::1]:${httpsPort}/x`],
      ['vault.example.test@evil.example', null],
      ['vault.example.test/../evil', null],
      ['vault.example.test:80:80', null],
      ['', null],
    ];
    for (const [host, location] of cases) {
      const { headers, status } = parseReply(
        await converse(plain, `GET /x HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`),
      );
      assert.equal(headers.get('Location'), location, host);
      assert.equal(status, location === null ? 400 : 308, host);
    }
    const outside = parseReply(
      await converse(plain, 'GET //evil.example/ HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'),
    );
    assert.equal(outside.status, 404);
  });

  test('serves http-01 challenges and returns 404 for unknown tokens', async (t) => {
    const { vault, plain } = await listening(t);
    await putChallenge(vault, {
      type: 'http-01',
      identifier: 'www.example.test',
      token: 'token',
      key_authorization: 'token.print',
    });
    const response = await fetch(`${plain}/.well-known/acme-challenge/token`, { redirect: 'manual' });
    assert.deepEqual([response.status, await response.text()], [200, 'token.print']);
    const unknown = await fetch(`${plain}/.well-known/acme-challenge/other`, { redirect: 'manual' });
    assert.equal(unknown.status, 404);
  });
});
