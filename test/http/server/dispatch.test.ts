/** Requests that fit no route, or fit one oddly: methods, paths, encodings, targets, and names of any kind. */

import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import fc from 'fast-check';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';
import { converse, parseReply, type RawReply, requestText } from '../../harness/http/raw.ts';

async function prepared(t: Parameters<typeof checkedServer>[0]) {
  const server = await checkedServer(t);
  for (const name of ['www', 'hidden-from-most']) await makeCertificate(server.vault, name);
  const { raw } = await makeKey(server.vault);
  const ask = (target: string, method = 'GET') =>
    server.raw(method, target, [`Authorization: Bearer ${raw}`]);
  return { server, raw, ask };
}

/** Status and code of a problem, which must say the same status in its body. */
function told({ status, body, headers }: RawReply): string {
  assert.equal(headers.get('Content-Type'), 'application/problem+json');
  const problem = JSON.parse(body);
  assert.equal(problem.status, status);
  return `${status} ${problem.code ?? problem.type}`;
}

const www = '/api/v1/certificates/www';

suite('an unsupported method', () => {
  test('gets 405 with Allow, with and without an API key', async (t) => {
    const { server, ask } = await prepared(t);
    const all = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY'];
    for (const [path, group] of Map.groupBy(routes, (route) => route.path)) {
      const target = path.replace('{name}', 'www').replace('{id}', '1');
      const methods: string[] = group.map(({ method }) => method);
      const allow = methods.map((method) => (method === 'GET' ? 'GET, HEAD' : method)).join(', ');
      const isAcme = group.some(({ protocol }) => protocol !== undefined);
      const refusal = isAcme ? 'urn:ietf:params:acme:error:malformed' : 'method_not_allowed';
      const others = all.filter((one) => !methods.includes(one));
      for (const other of others) {
        for (const reply of [await ask(target, other), await server.raw(other, target)]) {
          assert.equal(told(reply), `405 ${refusal}`, `${other} ${target}`);
          assert.equal(reply.headers.get('Allow'), allow);
        }
      }
    }
  });

  test('gets 405 without a body for HEAD on a path without GET', async (t) => {
    const { ask } = await prepared(t);
    const { status, body, headers } = await ask(`${www}/renew`, 'HEAD');
    assert.deepEqual([status, body, headers.get('Allow')], [405, '', 'POST']);
  });

  test('gets 400 if it is unknown or in another case', async (t) => {
    const { server } = await prepared(t);
    for (const method of ['get', 'Get', 'FROB']) {
      const text = await converse(server.url, requestText(method, '/api/v1/health', ['Connection: close']));
      assert.equal(told(parseReply(text)), '400 invalid_request');
    }
  });
});

suite('HEAD on JSON', () => {
  test('has the status, Content-Length and Content-Type of GET, and no body', async (t) => {
    const { ask } = await prepared(t);
    for (const target of [
      '/api/v1/certificates',
      www,
      `${www}/versions`,
      '/api/v1/health',
      '/nothing',
      `${www}?x`,
    ]) {
      const [get, head] = [await ask(target), await ask(target, 'HEAD')];
      assert.deepEqual([head.status, head.body], [get.status, '']);
      assert.equal(head.headers.get('Content-Length'), String(Buffer.byteLength(get.body, 'latin1')));
      assert.equal(head.headers.get('Content-Type'), get.headers.get('Content-Type'));
    }
  });
});

suite('a path', () => {
  test('gets 404 unless it matches a route exactly: case, slashes, dots, suffixes', async (t) => {
    const { ask } = await prepared(t);
    const paths = ['/', '/api', '/api/v1', '/api/v1/', '/api/v1/nothing', '/api/v2/health', '/API/v1/health'];
    paths.push('/api/v1/health/', '/api/v1/Health', '/api/v1/certificates/', `${www}/`, `${www}/Versions`);
    paths.push(`${www}/versions/`, `${www}/versions/1`, `${www}/PRIVATE.KEY`, `${www}/private.key/`);
    paths.push(`${www}/private_key`, `${www}/privatexkey`, `${www}/private.key.bak`, `${www}/renewal`);
    paths.push('//api/v1/health', '//api/v1/certificates/www/private.key', '///', '/api//v1/health');
    paths.push(
      '/api/v1/certificates//private.key',
      '/api/v1/./health',
      '/api/v1/certificates/../health',
      '/..',
    );
    paths.push(
      '/api/v1/health;x',
      '/api/v1/%68ealth',
      '/api%2Fv1/health',
      `${www}%2Fprivate.key/x`,
      '/client/',
      '/client',
    );
    for (const path of paths) assert.equal(told(await ask(path)), '404 not_found', path);
  });

  test('with an invalid or unknown certificate name gets 404', async (t) => {
    const { ask } = await prepared(t);
    const names = [
      'x'.repeat(128),
      'x'.repeat(129),
      'x'.repeat(10_000),
      'www%2Fprivate.key',
      'www%2f',
      '%2F',
      '.',
      '..',
    ];
    names.push(
      '%2e%2e',
      '*',
      '%2A',
      '%00',
      'www%00',
      'www%0a',
      'www%20',
      'WWW',
      '.www',
      '%F0%9F%94%91',
      ':name',
      '{name}',
    );
    for (const name of names) {
      for (const last of ['', '/versions', '/private.key'])
        assert.equal(
          told(await ask(`/api/v1/certificates/${name}${last}`)),
          '404 certificate_not_found',
          name,
        );
    }
  });

  test('with a percent-encoded certificate name is the same path', async (t) => {
    const { ask } = await prepared(t);
    for (const name of ['www', '%77ww', '%77%77%77'])
      assert.equal((await ask(`/api/v1/certificates/${name}/fullchain.pem`)).status, 200);
  });

  test('with an invalid percent-encoding gets 400', async (t) => {
    const { ask } = await prepared(t);
    for (const name of ['%', '%zz', '%2', 'www%', '%ff', '%c3%28', '%E0%A4%A', '%ed%a0%80'])
      for (const last of ['', '/private.key'])
        assert.equal(told(await ask(`/api/v1/certificates/${name}${last}`)), '400 invalid_request', name);
  });

  test('may be an absolute URL, but gets 400 with another host', async (t) => {
    const { ask } = await prepared(t);
    assert.equal((await ask(`http://vault.test${www}`)).status, 200);
    assert.equal((await ask('HTTP://vault.test/api/v1/health?x=1')).status, 200);
    for (const target of ['https://vault.test', 'http://vault.test//api/v1/health'])
      assert.equal(told(await ask(target)), '404 not_found', target);
    assert.equal(told(await ask('https://other.test/api/v1/health')), '400 invalid_request');
  });

  test('gets 400 if the request target is not a path', async (t) => {
    const { ask } = await prepared(t);
    for (const target of ['http:', 'http://', 'http:///api/v1/health', 'api'])
      assert.equal(told(await ask(target)), '400 invalid_request', target);
    assert.equal(told(await ask('*', 'OPTIONS')), '400 invalid_request');
  });
});

suite('every response', () => {
  test('has its own request id, for each kind of request', async (t) => {
    const { server, ask } = await prepared(t);
    const replies = [
      await ask('/api/v1/health'),
      await ask(`${www}/private.key`),
      await ask('/nothing'),
      await ask('/%'),
      await ask('/api/v1/health', 'DELETE'),
      await server.raw('GET', www),
      ...(await Promise.all(Array.from({ length: 50 }, () => ask(www)))),
    ];
    const ids = replies.map(({ headers }) => headers.get('X-Request-Id'));
    assert.equal(new Set(ids).size, replies.length);
    for (const id of ids) assert(server.log.lines.some((line) => line.includes(`"request_id":"${id}"`)));
  });

  test('does not reuse a request id that the client sends', async (t) => {
    const { server } = await prepared(t);
    const { headers } = await server.raw('GET', '/api/v1/health', ['X-Request-Id: mine']);
    assert.notEqual(headers.get('X-Request-Id'), 'mine');
  });

  test('to an internal error is a 500 without its message, which is logged', async (t) => {
    const { server, ask } = await prepared(t);
    t.mock.method(server.vault.freshness, 'look', async () => {
      throw new Error('a secret of the inside');
    });
    const reply = await ask(www);
    assert.equal(told(reply), '500 internal');
    assert.doesNotMatch(reply.body, /inside/);
    const line = server.log.lines.find((text) => text.includes('a secret of the inside')) ?? '';
    assert(line.includes(reply.headers.get('X-Request-Id') ?? '-'));
  });
});

suite('random input', () => {
  test('in certificate names gets 404, and 403 with a key that is limited to another certificate', async (t) => {
    const { server, raw } = await prepared(t);
    const limited = await makeKey(server.vault, { certificates: ['www'] });
    const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }).filter((text) => text !== 'www');
    const last = fc.constantFrom('', '/versions', '/private.key', '/renew', '/renewals/1');
    const property = fc.asyncProperty(name, last, async (text, end) => {
      const target = `/api/v1/certificates/${encodeURIComponent(text)}${end}`;
      const method = end === '/renew' ? 'POST' : 'GET';
      const ask = (key: string) => server.raw(method, target, [`Authorization: Bearer ${key}`]);
      assert.equal(told(await ask(raw)), '404 certificate_not_found');
      const refused = await ask(limited.raw);
      assert.equal(told(refused), '403 forbidden');
      assert(!refused.body.includes('hidden-from-most'));
    });
    await fc.assert(property, fuzzRuns(150));
  });

  test('in targets and queries is answered as 2xx or 4xx', async (t) => {
    const { ask } = await prepared(t);
    const piece = fc.constantFrom(
      '/',
      '/api/v1/',
      'certificates',
      'www',
      '%',
      '%2F',
      '?',
      '&',
      '=',
      'version',
      'limit',
      '1',
      '..',
      '#',
      ';',
    );
    const visible = fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code));
    const property = fc.asyncProperty(
      fc.string({ unit: fc.oneof(piece, visible), maxLength: 30 }),
      async (text) => {
        for (const target of [`/${text}`, `${www}/private.key?${text}`, `/api/v1/certificates?${text}`]) {
          const { status } = await ask(target);
          assert(status >= 200 && status < 500, `${status} for ${target}`);
        }
      },
    );
    await fc.assert(property, fuzzRuns(150));
  });
});
