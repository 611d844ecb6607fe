/** From a path to its routes: what is found, what is not, and that it is found again. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { json } from '../../../src/http/request/reply.ts';
import { type Method, type Route, route } from '../../../src/http/request/route.ts';
import { RouteTable } from '../../../src/http/request/route-table.ts';

function routeAt(method: Method, path: string): Route {
  const common = { id: `${method} ${path}`, summary: '', replies: {}, problems: [] };
  return route({ ...common, method, path, access: { kind: 'public' }, handle: async () => json(200, path) });
}

const table = new RouteTable([
  routeAt('GET', '/a/{name}'),
  routeAt('DELETE', '/a/{name}'),
  routeAt('GET', '/a/fixed'),
  routeAt('GET', '/a/{name}/b/{id}'),
]);

const long = 'x'.repeat(5000);

const found: Readonly<Record<string, [path: string, params: Record<string, string>]>> = {
  '/a/www': ['/a/{name}', { name: 'www' }],
  '/a/WWW': ['/a/{name}', { name: 'WWW' }],
  '/a/fixed': ['/a/fixed', {}],
  '/a/%66ixed': ['/a/{name}', { name: 'fixed' }],
  '/a/x%2Fy': ['/a/{name}', { name: 'x/y' }],
  '/a/fixed/b/7': ['/a/{name}/b/{id}', { name: 'fixed', id: '7' }],
  [`/a/${long}`]: ['/a/{name}', { name: long }],
};

test('a path is found with its parameters, also at the second lookup', () => {
  for (const time of [1, 2]) {
    for (const [asked, [path, params]] of Object.entries(found)) {
      const { routes, params: read } = table.find(asked) ?? {};
      assert.deepEqual([routes?.path, { ...read }], [path, params], `${asked.slice(0, 40)}, time ${time}`);
    }
  }
  assert.deepEqual([...(table.find('/a/www')?.routes.byMethod.keys() ?? [])], ['GET', 'DELETE']);
});

test('unknown paths are not found, also at the second lookup', () => {
  for (const _ of [1, 2]) {
    for (const path of ['', '/', '/a', '/a/', '/A/www', '/a/www/', '/a//b/7', '/a/www/b', '/a/www/b/7/c']) {
      assert.equal(table.find(path), undefined, path);
    }
  }
});

test('5000 different paths are found, and the first one again', () => {
  for (let index = 0; index < 5000; index += 1) {
    assert.deepEqual({ ...table.find(`/a/n${index}`)?.params }, { name: `n${index}` });
  }
  assert.deepEqual({ ...table.find('/a/n0')?.params }, { name: 'n0' });
});

test('RouteTable rejects duplicate routes and different parameter names at the same position', () => {
  assert.throws(() => new RouteTable([routeAt('GET', '/a'), routeAt('GET', '/a')]), /two routes for GET \/a/);
  const paths = ['/a/{name}', '/a/{id}/b'];
  assert.throws(() => new RouteTable(paths.map((path) => routeAt('GET', path))), /is called \{name\}/);
});
