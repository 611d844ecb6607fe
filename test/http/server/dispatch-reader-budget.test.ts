/**
 * Every operation under inputs of many parts, up to their limits: bodies, chunks, header fields, queries and paths. The
 * response is short, lists few invalid parts, no turn of the event loop is long, and no event is recorded. The
 * operations come from the table of routes.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';
import { maxEntries } from '../../../src/domain/inputs.ts';
import { defaultBodyLimit, longBodyLimit } from '../../../src/http/request/request-body.ts';
import type { Route } from '../../../src/http/request/route.ts';
import { assertBrief, watchTurns } from '../../harness/event-loop-turns.ts';
import { alice } from '../../harness/http/acme-fixtures.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { parseReply, requestText } from '../../harness/http/raw.ts';
import { type TestServer, testServer } from '../../harness/http/test-server.ts';
import type { Answer, Question } from './raw-client-thread.ts';

/** Milliseconds of the server's processor time. */
const longestTurn = 20;
const maxAnswer = 65_536;
const maxIssues = 20;

const cookies = Object.entries(alice.init.headers).map(([name, value]) => `${name}: ${value}`);
const parameter = /\{\w+\}/g;
const pathOf = (route: Route) => route.path.replaceAll(parameter, '1');
/** Files of an import may be larger. */
const longest = longBodyLimit;
const limitOf = ({ bodyLimit = defaultBodyLimit }: Route) => bodyLimit;

const client = new Worker(new URL('./raw-client-thread.ts', import.meta.url));
after(() => client.terminate());
let questions = 0;

/** Sends the bytes from the thread of the client; returns what is received until the server closes the connection. */
async function converse({ url }: TestServer, bytes: string): Promise<string> {
  const id = ++questions;
  const { promise, resolve } = Promise.withResolvers<string>();
  const take = (answer: Answer) => {
    if (answer.id === id) resolve(answer.received);
  };
  client.on('message', take).postMessage({ id, url, bytes } satisfies Question);
  return promise.finally(() => client.off('message', take));
}

/** Sends the request and returns the response, after turns of the server that are short. */
async function ask(server: TestServer, request: string, what: string) {
  let wire = '';
  await assertBrief(`${what}: a turn`, longestTurn, async () => {
    const stop = watchTurns();
    wire = await converse(server, request);
    return stop();
  });
  return { wire, ...parseReply(wire) };
}

/** A request of alice. */
function ofAlice({ method, protocol }: Route, target: string, body?: string): string {
  const lines = [...cookies, 'Connection: close'];
  if (body === undefined) return requestText(method, target, lines);
  lines.push(`Content-Type: ${protocol?.bodyType ?? 'application/json'}`);
  lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  return `${requestText(method, target, lines)}${body}`;
}

async function assertRefused(server: TestServer, request: string, what: string): Promise<void> {
  const { wire, status, body } = await ask(server, request, what);
  assert(status >= 400 && status < 500, `${what}: ${status}`);
  assert(wire.length < maxAnswer, `${what}: ${wire.length} bytes`);
  const { errors = [] } = JSON.parse(body) as { errors?: unknown[] };
  assert(errors.length <= maxIssues, `${what}: ${errors.length} errors`);
}

async function recorded({ vault }: TestServer): Promise<number> {
  const { count } = await vault.db.reader
    .selectFrom('audit_events')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return Number(count);
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
  const entries = Math.min(maxEntries - 1, Math.floor(space / 4));
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

/** Signed requests of ACME clients, whose parts are encoded. */
function* signedBodies(): Iterable<readonly [what: string, body: string]> {
  const encoded = (text: string) => Buffer.from(text).toString('base64url');
  for (const [what, json] of bodiesOf('identifiers', (defaultBodyLimit * 3) / 4 - 200)) {
    yield [`header, ${what}`, JSON.stringify({ protected: encoded(json), payload: '', signature: 'AA' })];
    const head = encoded(JSON.stringify({ alg: 'ES256', nonce: 'x', url: 'x', kid: 'x' }));
    yield [`payload, ${what}`, JSON.stringify({ protected: head, payload: encoded(json), signature: 'AA' })];
  }
}

const readers = routes.filter((route) => route.body !== undefined);

suite('a body of many parts gets a short 4xx, in short turns of the event loop, without an audit event:', () => {
  const ends: (() => unknown)[] = [];
  let server: TestServer;
  before(async () => {
    const owner = { after: (end: unknown) => ends.push(end as () => unknown) };
    server = await testServer(owner, { administrators: alice.administrators });
  });
  after(async () => {
    for (const end of ends.toReversed()) await end();
  });
  for (const route of readers) {
    test(route.id, async () => {
      const events = await recorded(server);
      const signed = route.protocol === undefined ? [] : [...signedBodies()];
      for (const [what, body] of signed)
        await assertRefused(server, ofAlice(route, pathOf(route), body), what);
      const most = route.protocol === undefined ? Math.min(longest, limitOf(route)) : defaultBodyLimit;
      for (const field of fieldsOf(route)) {
        for (const [what, body] of bodiesOf(field, most)) {
          assert(body.length <= most, `${what}: ${body.length}`);
          await assertRefused(server, ofAlice(route, pathOf(route), body), `${field}: ${what}`);
        }
      }
      assert.equal(await recorded(server), events);
    });
  }
});

test('a body over the limit of its operation gets 413', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  for (const route of readers.filter(({ protocol }) => protocol === undefined)) {
    const request = ofAlice(route, pathOf(route), ' '.repeat(limitOf(route) + 1));
    const { status } = await ask(server, request, route.id);
    assert.equal(status, 413, route.id);
  }
});

test('a body in chunks of one byte, and a head of thousands of fields, are read in short turns', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  const chunks = `${'1\r\n \r\n'.repeat(50_000)}0\r\n\r\n`;
  const heads: Readonly<Record<string, string[]>> = {
    'fields of one name': Array.from({ length: 3000 }, () => 'a:'),
    'fields of different names': Array.from({ length: 2000 }, (_, index) => `${index.toString(36)}:`),
    cookies: [`Cookie: ${'a=;'.repeat(5000)}`],
    entities: [`If-None-Match: ${'"",'.repeat(5000)}`],
    'languages and types': [`Accept: ${'a/b,'.repeat(2000)}`, `Accept-Language: ${'a,'.repeat(3000)}`],
    proxies: [`X-Forwarded-For: ${'::1,'.repeat(3500)}`],
    'forwarded elements': [`Forwarded: ${'for=a,'.repeat(2000)}`],
  };
  const events = await recorded(server);
  for (const route of routes) {
    if (route.body !== undefined && route.protocol === undefined) {
      const lines = [...cookies, 'Connection: close', 'Content-Type: application/json'];
      const head = requestText(route.method, pathOf(route), [...lines, 'Transfer-Encoding: chunked']);
      await assertRefused(server, `${head}${chunks}`, `${route.id}: chunks`);
    }
    if (route.method !== 'GET') continue;
    for (const [what, lines] of Object.entries(heads)) {
      const request = requestText('GET', pathOf(route), ['Connection: close', ...lines]);
      const { status } = await ask(server, request, `${route.id}: ${what}`);
      if (status !== 503) assert(status < 500, `${route.id}: ${what}: ${status}`);
    }
  }
  assert.equal(await recorded(server), events);
});

test('a list over the maximum length is rejected for its length, one of maximum length for its entries', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  const [route] = routes.filter(({ id }) => id === 'createApiKey');
  assert(route);
  const detailFor = async (length: number) => {
    const certificates = Array.from({ length }, () => 'nothing');
    const body = JSON.stringify({ name: 'x', scopes: ['certificates:read'], certificates });
    const request = ofAlice(route, route.path, body);
    return JSON.parse((await ask(server, request, `${length} entries`)).body).detail as string;
  };
  assert.equal(
    await detailFor(maxEntries + 1),
    `certificates has ${maxEntries + 1} entries; a list has at most ${maxEntries}.`,
  );
  assert.match(await detailFor(maxEntries), /nothing/);
});

test('a query or path of many parts gets a short response, in short turns of the event loop', async (t) => {
  const server = await testServer(t, { administrators: alice.administrators });
  const names = Array.from({ length: 3000 }, (_, index) => index.toString(36)).join('&');
  const values = Array.from({ length: 90 }, () => 'limit=!').join('&');
  for (const route of routes.filter(({ protocol }) => protocol === undefined)) {
    const targets = [`${pathOf(route)}?${names}`, `${pathOf(route)}?${values}`];
    for (const unit of ['%61', 'a', '%2C', '%F0%9F%94%91'])
      if (route.path.includes('{')) targets.push(route.path.replaceAll(parameter, repeated(unit, 3500)));
    for (const target of targets) {
      const { wire, status } = await ask(server, ofAlice(route, target), route.id);
      // Some operations ignore their query; the one that reports whether the vault is ready has 503 for that.
      if (status !== 503) assert(status < 500, `${route.id}: ${status}`);
      if (status >= 400) assert(wire.length < maxAnswer, `${route.id}: ${wire.length} bytes`);
    }
  }
});
