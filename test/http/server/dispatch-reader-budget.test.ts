/**
 * Every operation under inputs of many parts, up to their limits: bodies, queries and paths. The response is short, lists
 * few invalid parts, and no turn of the event loop is long. The operations come from the table of routes.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { z } from 'zod';
import { mostEntries } from '../../../src/domain/inputs.ts';
import { longBodyLimit, usualBodyLimit } from '../../../src/http/request/request-body.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { routes } from '../../harness/all-routes.ts';
import { watchTurns } from '../../harness/event-loop-turns.ts';
import { alice } from '../../harness/http-acme-fixtures.ts';
import { converse, parseReply, requestText } from '../../harness/http-raw.ts';
import { type TestServer, testServer } from '../../harness/test-server.ts';

/** Milliseconds of processor time, of client and server together. */
const longestTurn = 200;
const longestAnswer = 65_536;
const mostIssues = 20;

const cookies = Object.entries(alice.init.headers).map(([name, value]) => `${name}: ${value}`);
const parameter = /\{\w+\}/g;
const pathOf = (route: Route) => route.path.replaceAll(parameter, '1');
/** Files of an import may be larger. */
const longest = longBodyLimit;
const limitOf = ({ bodyLimit = usualBodyLimit }: Route) => bodyLimit;

/** Sends the request as alice, once more if a turn was long, because once may be the compiler. */
async function ask(server: TestServer, route: Route, target: string, body?: string) {
  const lines = [...cookies, 'Connection: close'];
  if (body !== undefined)
    lines.push('Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`);
  const request = `${requestText(route.method, target, lines)}${body ?? ''}`;
  for (let tries = 0; ; tries += 1) {
    const stop = watchTurns();
    const wire = await converse(server.url, request);
    const turn = stop();
    if (turn < longestTurn || tries === 2) return { wire, turn, ...parseReply(wire) };
  }
}

function assertShort({ wire, status, body, turn }: Awaited<ReturnType<typeof ask>>, what: string): void {
  assert(turn < longestTurn, `${what}: a turn took ${turn} ms`);
  assert(status >= 400 && status < 500, `${what}: ${status}`);
  assert(wire.length < longestAnswer, `${what}: ${wire.length} bytes`);
  const { errors = [] } = JSON.parse(body) as { errors?: unknown[] };
  assert(errors.length <= mostIssues, `${what}: ${errors.length} errors`);
}

/** The first member of a body, and the first list. */
function fieldsOf({ body }: Route): string[] {
  type Shape = { type?: string; properties?: Record<string, Shape>; anyOf?: Shape[] };
  const shape = z.toJSONSchema(body ?? z.never(), { io: 'input', unrepresentable: 'any' }) as Shape;
  const members = Object.entries(shape.properties ?? shape.anyOf?.[0]?.properties ?? { x: {} });
  const list = members.find(([, { type }]) => type === 'array');
  return [...new Set([members[0]?.[0] ?? 'x', list?.[0] ?? 'x'])];
}

const repeated = (unit: string, size: number) => unit.repeat(Math.max(1, Math.floor(size / unit.length)));

/** Bodies of at most `limit` bytes. */
function* bodiesOf(field: string, limit: number): Iterable<readonly [what: string, body: string]> {
  const space = limit - field.length - 20;
  const entries = Math.min(mostEntries - 1, Math.floor(space / 4));
  yield ['a list of invalid entries', `{"${field}":[${'"!",'.repeat(entries)}"!"]}`];
  yield ['the longest list', `{"${field}":[${repeated('"!",', space)}"!"]}`];
  yield ['the longest list of numbers', `{"${field}":[${repeated('1,', space)}1]}`];
  yield ['nested lists', `{"${field}":${repeated('[', space / 2)}${repeated(']', space / 2)}}`];
  const depth = Math.floor(space / 6);
  yield ['nested objects', `{"${field}":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}`];
  const names = Array.from({ length: Math.floor(space / 12) }, (_, index) => `"k${index}":1`);
  yield ['names', `{${names.join(',').slice(0, space)}}`];
  yield ['names in a member', `{"${field}":{${names.join(',')}}}`];
}

const readers = routes.filter((route) => route.body !== undefined && route.protocol === undefined);

suite('a body of many parts gets a short answer, in short turns of the event loop:', () => {
  for (const route of readers) {
    test(route.id, async (t) => {
      const server = await testServer(t, { administrators: alice.administrators });
      for (const field of fieldsOf(route)) {
        for (const [what, body] of bodiesOf(field, Math.min(longest, limitOf(route)))) {
          assert(body.length <= limitOf(route), `${what}: ${body.length}`);
          assertShort(await ask(server, route, pathOf(route), body), `${field}: ${what}`);
        }
      }
    });
  }
});

test('a body over the limit of its operation is refused, whatever it contains', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  for (const route of readers) {
    const { status } = await ask(server, route, pathOf(route), ' '.repeat(limitOf(route) + 1));
    assert.equal(status, 413, route.id);
  }
});

test('a list that is too long is refused by its length, one of the greatest length by its entries', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  const [route] = routes.filter(({ id }) => id === 'createApiKey');
  assert(route);
  const detailFor = async (length: number) => {
    const certificates = Array.from({ length }, () => 'nothing');
    const body = JSON.stringify({ name: 'x', scopes: ['certificates:read'], certificates });
    return JSON.parse((await ask(server, route, route.path, body)).body).detail as string;
  };
  assert.equal(
    await detailFor(mostEntries + 1),
    `certificates has ${mostEntries + 1} entries; a list has at most ${mostEntries}.`,
  );
  assert.match(await detailFor(mostEntries), /nothing/);
});

test('a query or path of many parts gets a short answer, in short turns of the event loop', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  const names = Array.from({ length: 3000 }, (_, index) => index.toString(36)).join('&');
  const values = Array.from({ length: 90 }, () => 'limit=!').join('&');
  for (const route of routes.filter(({ protocol }) => protocol === undefined)) {
    const targets = [`${pathOf(route)}?${names}`, `${pathOf(route)}?${values}`];
    for (const unit of ['%61', 'a', '%2C', '%F0%9F%94%91'])
      if (route.path.includes('{')) targets.push(route.path.replaceAll(parameter, repeated(unit, 3500)));
    for (const target of targets) {
      const { wire, status, turn } = await ask(server, route, target);
      assert(turn < longestTurn, `${route.id}: a turn took ${turn} ms`);
      // Some operations ignore their query; the one that reports whether the vault is ready has 503 for that.
      if (status !== 503) assert(status < 500, `${route.id}: ${status}`);
      if (status >= 400) assert(wire.length < longestAnswer, `${route.id}: ${wire.length} bytes`);
    }
  }
});
