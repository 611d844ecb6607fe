/**
 * An exception in the server's own code around a request: one response, one error in the log, and the process goes on.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import type { ListenerContext } from '../../../src/http/server/listener-context.ts';
import { startServer } from '../../../src/http/server/server.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { rawRequest } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

const targets = {
  'a route': ['GET', '/api/v1/certificates'],
  'a public route': ['GET', '/api/v1/health'],
  'a method that is not allowed': ['PUT', '/api/v1/health'],
  'an unknown path': ['GET', '/nothing'],
  'a path that is refused before any route': ['GET', '//x'],
} as const;

/** A server with a part of its context replaced, on an address of its own. */
async function serverWith(
  t: Parameters<typeof testServer>[0],
  replace: (context: ListenerContext) => ListenerContext,
) {
  const { context, log } = await testServer(t);
  const running = await startServer(replace(context), routes, { host: '127.0.0.1', port: 0 });
  t.after(() => running.stop(0));
  const ask = async (what: keyof typeof targets) => {
    const [method, target] = targets[what];
    return rawRequest(running.url, method, target, ['X-Forwarded-For: 192.0.2.1']);
  };
  return { ask, log };
}

suite('an exception while the address of the client is computed', () => {
  test('results in one 500 on routes that need the address, and does not affect other requests', async (t) => {
    const { ask, log } = await serverWith(t, (context) => ({
      ...context,
      get trustedProxies(): never {
        throw new Error('the address cannot be computed');
      },
    }));
    const expected = { 'a route': 500, 'a public route': 500, 'a method that is not allowed': 405 } as const;
    for (const round of [1, 2]) {
      for (const [what, status] of Object.entries({ ...expected, 'an unknown path': 404 })) {
        const reply = await ask(what as keyof typeof targets);
        assert.equal(reply.status, status, `${what}, round ${round}`);
        if (status === 500) assert.equal(JSON.parse(reply.body).code, 'internal');
        assert.doesNotMatch(reply.body, /cannot be computed/);
      }
      assert.equal((await ask('a path that is refused before any route')).status, 404);
    }
    const errors = log.lines.filter((line) => line.includes('"level":"error"'));
    assert.equal(errors.length, 4, 'the requests that failed, each once');
    assert(errors.every((line) => line.includes('the address cannot be computed')));
  });
});

suite('an exception after the response was sent', () => {
  test('does not change the response, and is logged', async (t) => {
    const { ask, log } = await serverWith(t, (context) => ({
      ...context,
      vault: {
        ...context.vault,
        meter: new Proxy(context.vault.meter, {
          get: (meter, name) => {
            if (name === 'requested') throw new Error('the request cannot be counted');
            const value: unknown = Reflect.get(meter, name);
            return typeof value === 'function' ? value.bind(meter) : value;
          },
        }),
      },
    }));
    const expected = {
      'a route': 401,
      'a public route': 200,
      'a method that is not allowed': 405,
      'an unknown path': 404,
      'a path that is refused before any route': 404,
    } as const;
    for (const [what, status] of Object.entries(expected)) {
      assert.equal((await ask(what as keyof typeof targets)).status, status, what);
    }
    const errors = log.lines.filter((line) => line.includes('the request cannot be counted'));
    assert.equal(errors.length, Object.keys(expected).length);
  });
});
