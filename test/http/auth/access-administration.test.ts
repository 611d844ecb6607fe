/** Every administrators' endpoint of the table, as an administrator finds it, and what none of them ever logs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { eventsOf } from '../../harness/http/fixtures.ts';

const guarded = routes.filter(({ access }) => access.kind === 'administrator');

test('every administrator endpoint accepts an administrator and then validates the body and query', async (t) => {
  const server = await checkedServer(t, { administrators: alice.administrators });
  const places = guarded.map(({ method, path, body, query }) => ({
    method: method === 'GET' ? 'HEAD' : method,
    path: path.replaceAll(/\{\w+\}/g, '999999'),
    hasBody: body !== undefined,
    hasQuery: query !== undefined,
  }));
  assert(places.length >= 30, String(places.length));
  for (const { method, path, hasBody, hasQuery } of places) {
    const place = `${method} ${path}`;
    const { status } = await server.raw(method, path, [alice.line]);
    assert(![401, 403, 500].includes(status), `${place}: ${status}`);
    // Without a body where one is needed, it is the body that is wrong.
    if (hasBody) assert.equal(status, 400, place);
    assert(hasQuery, `${place} lets parameters pass that it does not know`);
    assert.equal((await server.raw(method, `${path}?nonsense=1`, [alice.line])).status, 400, place);
  }
  assert.deepEqual(eventsOf(server.dataDir, 'access.refuse'), []);
  assert.doesNotMatch(server.log.lines.join('\n'), /token-of|"level":"(warn|error)"/);
});

test('a body is not read before its sender is authorized', async (t) => {
  const server = await checkedServer(t, { administrators: alice.administrators });
  for (const { method, path, body } of guarded) {
    if (body === undefined) continue;
    const response = await server.get(path.replaceAll(/\{\w+\}/g, 'x'), undefined, {
      method,
      body: '{',
      headers: { 'Content-Type': 'application/json' },
    });
    assert.equal(response.status, 403, `${method} ${path}`);
  }
});

test('GET endpoints for administrators respond with Cache-Control: no-store', async (t) => {
  const server = await checkedServer(t, { administrators: alice.administrators });
  for (const { method, path } of guarded.filter((route) => route.method === 'GET')) {
    const { headers } = await server.raw('HEAD', path.replaceAll(/\{\w+\}/g, '1'), [alice.line]);
    assert.equal(headers.get('Cache-Control'), 'no-store', `${method} ${path}`);
  }
});
