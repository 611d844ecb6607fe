/**
 * What every answer tells browsers. All routes are asked by everybody in every way, then everything that answers
 * without a route; one answer that lacks a header is one too many.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { Problem } from '../../../src/base/problem.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { route } from '../../../src/http/request/route.ts';
import { securityHeaders } from '../../../src/http/request/security-headers.ts';
import { consoleReply } from '../../../src/http/routes/console-routes.ts';
import { serverContext } from '../../../src/http/server/listener-context.ts';
import { startListeners } from '../../../src/http/server/listeners.ts';
import { alice, makeAccount, putChallenge } from '../../harness/http/acme-fixtures.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { converse, parseReply, rawRequest, requestText } from '../../harness/http/raw.ts';
import { headerComplaints } from '../../harness/http/security-headers.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';

/** What a page of another site sends before it asks for anything that is not its own. */
const preflight = {
  Origin: 'https://evil.test',
  'Access-Control-Request-Method': 'GET',
  'Access-Control-Request-Headers': 'authorization',
};

/** A server and a function that asks it, looks at the headers, and keeps the statuses that it saw. */
async function watched(t: TestContext, options: Parameters<typeof testServer>[1] = {}) {
  const server = await testServer(t, { administrators: { ...alice.administrators }, ...options });
  const seen = new Set<number>();
  const ask = async (method: string, path: string, headers: Record<string, string> = {}, body?: string) => {
    const closing = new AbortController();
    const init = { method, headers, ...(body !== undefined && { body }), redirect: 'manual' as const };
    const response = await fetch(new URL(path, server.url), { ...init, signal: closing.signal });
    // A stream has no end of its own.
    closing.abort();
    seen.add(response.status);
    const complaints = headerComplaints(response.headers);
    assert.deepEqual(complaints, [], `${method} ${path} ${JSON.stringify(headers)} → ${response.status}`);
    return response;
  };
  return { server, seen, ask };
}

/** Everybody who may come, as header lines. */
function callers(key: string): Record<string, string>[] {
  return [
    {},
    { Authorization: `Bearer ${key}` },
    { Authorization: 'Bearer garbage' },
    { ...alice.init.headers },
    { ...alice.init.headers, 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.test' },
  ];
}

suite('the security headers', () => {
  test('are in all responses of all routes and methods, and never allow another site', async (t) => {
    const { server, seen, ask } = await watched(t);
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    const filled = (path: string) =>
      path.replace('{name}', 'www').replace('{id}', '1').replace('{token}', 'token');
    let count = 0;
    // What deletes comes last, so that there is something to ask about before.
    const ordered = routes.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'));
    for (const { method, path } of ordered) {
      for (const caller of callers(raw)) {
        for (const verb of new Set([method, method === 'GET' ? 'HEAD' : method, 'OPTIONS', 'TRACE2'])) {
          const isOther = verb === 'OPTIONS' ? preflight : {};
          const body = ['POST', 'PUT', 'PATCH'].includes(verb) ? '{}' : undefined;
          const type = body === undefined ? {} : { 'Content-Type': 'application/json' };
          await ask(verb, filled(path), { ...caller, ...isOther, ...type }, body);
          count += 1;
        }
      }
    }
    assert(count > routes.length * 15, String(count));
    for (const status of [200, 202, 204, 400, 401, 403, 404, 405]) {
      assert(seen.has(status), `${status} was not among ${[...seen]}`);
    }
  });

  test('are in 204, 304, 409 and 413 responses and in event streams', async (t) => {
    const { server, seen, ask } = await watched(t);
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    const key = { Authorization: `Bearer ${raw}` };
    for (const artifact of ['fullchain.crt', 'private.key']) {
      const { headers } = await ask('GET', `/api/v1/certificates/www/${artifact}`, key);
      const again = { ...key, 'If-None-Match': headers.get('ETag') ?? '' };
      assert.equal((await ask('GET', `/api/v1/certificates/www/${artifact}`, again)).status, 304);
    }
    const script = await ask('GET', '/client/install.sh');
    assert.equal(script.headers.get('Content-Type'), 'text/x-shellscript; charset=utf-8');
    const unchanged = { 'If-None-Match': script.headers.get('ETag') ?? '' };
    assert.equal((await ask('GET', '/client/install.sh', unchanged)).status, 304);
    const posting = { ...alice.init.headers, 'Content-Type': 'application/json' };
    await ask('POST', '/api/v1/api-keys', posting, `"${'x'.repeat(1024 * 1024)}"`);
    const account = await makeAccount(server.vault);
    assert.equal((await ask('DELETE', `/api/v1/acme-accounts/${account}`, alice.init.headers)).status, 204);
    assert.equal((await ask('DELETE', '/api/v1/api-keys/1', alice.init.headers)).status, 409);
    const events = await ask('GET', '/api/v1/events', alice.init.headers);
    assert.equal(events.headers.get('Content-Type'), 'text/event-stream');
    for (const status of [200, 204, 304, 409, 413]) assert(seen.has(status), `${status}`);
  });

  test('are in 500, 503 and 429 responses to failed handlers', async (t) => {
    const failing = [new Error('a bug'), new StorageError('full'), new Problem('rate_limited')].map(
      (error, index) =>
        route({
          method: 'GET',
          path: `/failing/${index}`,
          id: `fail${index}`,
          summary: '',
          access: { kind: 'public' },
          replies: {},
          problems: [],
          handle: async () => {
            throw error;
          },
        }),
    );
    const { seen, ask } = await watched(t, { routes: failing });
    for (const { path } of failing) await ask('GET', path);
    assert.deepEqual([...seen], [500, 503, 429]);
  });

  test('are in responses to malformed and unusual requests', async (t) => {
    const { server } = await watched(t);
    const ok = requestText('GET', '/api/v1/health', ['Connection: close']);
    const texts: Record<string, string> = {
      garbage: 'garbage\r\n\r\n',
      'another protocol': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'two lengths': ok.replace('Connection', 'Content-Length: 1\r\nContent-Length: 2\r\nConnection'),
      'a very long path': ok.replace('/api', `/${'a'.repeat(20_000)}`),
      'no host': ok.replace('Host: vault.test\r\n', ''),
      'a path that cannot be decoded': ok.replace('/api', '/%ff'),
      'two slashes': ok.replace('/api', '//api'),
      'the whole server': ok.replace('GET /api/v1/health', 'OPTIONS *'),
      'a preflight of the whole server': ok.replace(
        'GET /api/v1/health HTTP/1.1',
        'OPTIONS * HTTP/1.1\r\nOrigin: https://evil.test\r\nAccess-Control-Request-Method: PUT',
      ),
      'an absolute address': ok.replace('/api', 'http://vault.test/api'),
      'an unknown expectation': ok.replace('Connection', 'Expect: tea\r\nConnection'),
      'an upgrade': ok.replace('Connection: close', 'Upgrade: h2c\r\nConnection: Upgrade, close'),
      'nothing there': ok.replace('/api/v1/health', '/nothing'),
      'an unknown method': ok.replace('GET', 'BREW'),
      'HTTP/1.0': 'GET /api/v1/health HTTP/1.0\r\n\r\n',
    };
    for (const [what, text] of Object.entries(texts)) {
      const { status, headers } = parseReply(await converse(server.url, text));
      if (what === 'an unknown method') assert([400, 405].includes(status), what);
      assert(status >= 200, what);
      assert.deepEqual(headerComplaints(headers), [], `${what} → ${status}`);
    }
  });

  test("are in the console's page and files, with a Content-Security-Policy of the console", async (t) => {
    const names = ['index.html', 'main-abc123.js', 'main-def456.css', 'icon-abc123.svg'];
    const files = new Map(names.map((name) => [name, Buffer.from(name)]));
    const { ask } = await watched(t, { pages: consoleReply(files) });
    for (const path of ['/', ...names.slice(1).map((name) => `/console/${name}`)]) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await ask(method, path, { Origin: 'https://evil.test' });
        assert.equal(status, 200, path);
        assert.match(headers.get('Content-Security-Policy') ?? '', /; script-src 'self'; /);
        const again = await ask(method, path, { 'If-None-Match': headers.get('ETag') ?? '' });
        assert.equal(again.status, 304);
        assert.match(again.headers.get('Content-Security-Policy') ?? '', /; script-src 'self'; /);
      }
    }
    assert.equal((await ask('GET', '/console/no-such-file.js')).status, 404);
    assert.equal((await ask('OPTIONS', '/', preflight)).status, 404);
  });

  test('are in responses of the http-01 listener, also to unknown paths and invalid requests', async (t) => {
    const { server } = await watched(t);
    await putChallenge(server.vault, {
      type: 'http-01',
      identifier: 'www.example.test',
      token: 'token',
      key_authorization: 'token.thumbprint',
    });
    const url = await challengeListener(t, server);
    const statuses = [];
    for (const path of [
      '/.well-known/acme-challenge/token',
      '/.well-known/acme-challenge/none',
      '/',
      '/api',
    ]) {
      const { status, headers } = await rawRequest(url, 'GET', path, ['Origin: https://evil.test']);
      assert.deepEqual(headerComplaints(headers), [], path);
      statuses.push(status);
    }
    assert.deepEqual(statuses, [200, 404, 404, 404]);
    const { headers } = parseReply(await converse(url, 'garbage\r\n\r\n'));
    assert.deepEqual(headerComplaints(headers), []);
  });

  test('are reported by headerComplaints if one is missing, repeated or not allowed', () => {
    const good = new Headers({ ...securityHeaders });
    assert.deepEqual(headerComplaints(good), []);
    for (const name of Object.keys(securityHeaders)) {
      const without = new Headers(good);
      without.delete(name);
      assert.notDeepEqual(headerComplaints(without), [], `without ${name}`);
      const twice = new Headers(good);
      twice.append(name, 'unsafe-none');
      assert.notDeepEqual(headerComplaints(twice), [], `${name} twice`);
    }
    for (const name of ['Server', 'X-Powered-By', 'Access-Control-Allow-Origin', 'Access-Control-Max-Age']) {
      const more = new Headers(good);
      more.set(name, '*');
      assert.notDeepEqual(headerComplaints(more), [], `with ${name}`);
    }
  });
});

/** Where the listener for http-01 listens, beside a main one of its own. */
async function challengeListener(t: TestContext, { vault, log }: TestServer): Promise<string> {
  const anywhere = { host: '127.0.0.1', port: 0 };
  const context = serverContext(vault, { version: '0', publicUrl: undefined });
  const settings = { listen: anywhere, acmeHttpListen: anywhere, acmeTlsListen: undefined };
  const listeners = await startListeners(context, routes, settings);
  t.after(() => listeners.stop(0));
  const line = log.lines.find((text) => text.includes('listening for http-01')) ?? '{}';
  return (JSON.parse(line) as { url: string }).url;
}
