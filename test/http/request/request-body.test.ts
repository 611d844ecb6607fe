/** JSON bodies: what is refused before it is read, what is refused after, and that no refusal shows what was sent. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { z } from 'zod';
import { json } from '../../../src/http/request/reply.ts';
import { route } from '../../../src/http/request/route.ts';
import { converse, open, parseReply, requestText } from '../../harness/http/raw.ts';
import { testServer } from '../../harness/http/test-server.ts';

const word = z.strictObject({ word: z.string().max(20), list: z.array(z.int()).optional() });

const routes = [
  route({
    method: 'POST',
    path: '/echo',
    id: 'echo',
    summary: 'Says it again',
    access: { kind: 'public' },
    body: word,
    bodyLimit: 200,
    replies: { 200: { description: 'the word', schema: word } },
    problems: [],
    handle: async ({ body }) => json(200, body),
  }),
  route({
    method: 'POST',
    path: '/guarded',
    id: 'guarded',
    summary: 'Needs a key',
    access: { kind: 'scope', scope: 'certificates:read' },
    body: word,
    replies: { 200: { description: 'the word', schema: word } },
    problems: [],
    handle: async ({ body }) => json(200, body),
  }),
  route({
    method: 'POST',
    path: '/members',
    id: 'members',
    summary: 'Counts the members of the body',
    access: { kind: 'public' },
    body: z.record(z.string(), z.unknown()),
    replies: { 200: { description: 'how many', schema: z.int() } },
    problems: [],
    handle: async ({ body }) => json(200, Object.keys(body).length),
  }),
  route({
    method: 'POST',
    path: '/bodiless',
    id: 'bodiless',
    summary: 'Reads no body',
    access: { kind: 'public' },
    replies: { 200: { description: 'what it got', schema: z.unknown() } },
    problems: [],
    handle: async ({ body }) => json(200, { body: typeof body }),
  }),
];

async function prepared(t: TestContext) {
  const server = await testServer(t, { routes });
  const post = async (body: string | Buffer, headers: Record<string, string> = {}, path = '/echo') => {
    const all = { 'Content-Type': 'application/json', ...headers };
    const response = await server.get(path, undefined, { method: 'POST', body, headers: all });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };
  return { server, post };
}

const members = (count: number) => Array.from({ length: count }, (_, at) => `"${at}":0`).join();
const entries = (count: number) => Array.from({ length: count }, () => '0').join();
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

const manyParts: readonly (readonly [what: string, body: string, answer: number | RegExp])[] = [
  ['1000 members', `{${members(1000)}}`, 1000],
  ['1001 members', `{${members(1001)}}`, /more than 1000 members/],
  ['members in several objects', `{"a":{${members(600)}},"b":[{${members(600)}}]}`, /more than 1000 members/],
  ['two lists of 10000 entries', `{"a":[${entries(10_000)}],"b":[${entries(10_000)}]}`, 2],
  [
    'many long lists',
    `{"a":[${entries(10_000)}],"b":[[${entries(9_000)}],[${entries(9_000)}]]}`,
    /more than 21000/,
  ],
  ['colons and brackets in a string', `{"a":"${':[{'.repeat(2000)}"}`, 1],
  ['quotation marks and backslashes in strings', `{"a":"${'\\\\\\":{'.repeat(2000)}\\\\","b":1}`, 2],
  ['50 levels', `{"a":${nested(49)}}`, 1],
  ['51 levels', `{"a":${nested(50)}}`, /deeper than 50 levels/],
  ['many brackets side by side', `{"a":[${'[],'.repeat(5000)}{}]}`, 1],
  ['closed brackets before many opened', ']'.repeat(100) + '['.repeat(151), /deeper than 50 levels/],
];

suite('a JSON body', () => {
  for (const [what, sent, answer] of manyParts) {
    test(`of ${what} is ${typeof answer === 'number' ? 'read' : 'rejected'}`, async (t) => {
      const { post } = await prepared(t);
      const { status, body } = await post(sent, {}, '/members');
      if (typeof answer === 'number') assert.deepEqual([status, body], [200, answer]);
      else {
        assert.deepEqual([status, body.code], [400, 'invalid_request']);
        assert.match(String(body.detail), answer);
      }
    });
  }

  test('is rejected if its content type is missing or not JSON, or if it is compressed', async (t) => {
    const { server, post } = await prepared(t);
    const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'];
    types.push('application/json; charset=latin1', 'application/jsonp', 'text/json', 'application/json, x');
    for (const type of types) {
      const { status, body } = await post('{"word":"x"}', { 'Content-Type': type });
      assert.deepEqual([status, body.code], [400, 'invalid_request'], type);
      assert.match(String(body.detail), /Content-Type: application\/json/);
    }
    const bare = await server.get('/echo', undefined, { method: 'POST' });
    assert.equal(bare.status, 400);
    const packed = await post('{"word":"x"}', { 'Content-Encoding': 'gzip' });
    assert.match(String(packed.body.detail), /compressed/);
  });

  test('is rejected if it is malformed, with the position and without its text', async (t) => {
    const { post } = await prepared(t);
    const cases: [string, string][] = [
      ['', 'is empty'],
      ['  \n', 'is empty'],
      ['secret', 'line 1, column 1.'],
      ['{"word":\n "secret",}', 'line 2, column 11.'],
      ['{"word": secret}', 'line 1, column 10.'],
      ['{"word":"secret"', 'line 1, column 17.'],
      ['{"word":"sec\nret"}', 'line 1, column 13.'],
      ['{"word":"secret"} x', 'line 1, column 19.'],
      ['[1 2]', 'line 1, column 4.'],
    ];
    for (const [text, where] of cases) {
      const { status, body } = await post(text);
      assert.deepEqual([status, body.code], [400, 'invalid_request'], text);
      assert(String(body.detail).includes(where), `${text}: ${body.detail}`);
      assert.doesNotMatch(JSON.stringify(body), /secret/);
    }
    const latin = await post(Buffer.from([0x22, 0xe9, 0x22]));
    assert.match(String(latin.body.detail), /not UTF-8/);
  });

  test('is rejected with the paths of values that do not match the schema', async (t) => {
    const { post } = await prepared(t);
    const { status, body } = await post('{"word":1,"list":[1,"x"],"__proto__":{}}');
    assert.equal(status, 400);
    const paths = (body.errors as { path: string }[]).map(({ path }) => path);
    assert.deepEqual(paths.slice(0, 2), ['word', 'list.1']);
    for (const text of ['null', '[]', '"x"', '7']) assert.equal((await post(text)).status, 400, text);
  });

  test('gets 413 above the limit of its route, also in chunks, and the connection stays usable', async (t) => {
    const { server, post } = await prepared(t);
    const padded = (size: number) => `{"word":"x"}${' '.repeat(size - 12)}`;
    assert.equal((await post(padded(200))).status, 200);
    assert.equal((await post(padded(201))).body.code, 'payload_too_large');
    assert.equal((await post(padded(100_000))).body.code, 'payload_too_large');
    const line = 'Content-Type: application/json';
    const [big, small] = [padded(5000), '{"word":"after"}'];
    const chunked = requestText('POST', '/echo', [line, 'Transfer-Encoding: chunked']);
    const second = requestText('POST', '/echo', [
      line,
      `Content-Length: ${small.length}`,
      'Connection: close',
    ]);
    const text = await converse(server.url, `${chunked}1388\r\n${big}\r\n0\r\n\r\n${second}${small}`);
    assert.equal(parseReply(text).status, 413);
    assert.match(text.slice(text.lastIndexOf('HTTP/1.1')), /^HTTP\/1\.1 200 .*\{"word":"after"\}$/s);
  });

  test('is dropped without a warning if the client disconnects', async (t) => {
    const { server } = await prepared(t);
    const lines = ['Content-Type: application/json', 'Content-Length: 100'];
    const socket = await open(server.url);
    await new Promise<void>((resolve) => socket.write(requestText('POST', '/echo', lines), () => resolve()));
    socket.destroy();
    await server.stop(1000);
    assert.doesNotMatch(server.log.lines.join('\n'), /"level":"(warn|error)"/);
  });

  test('is not read before authorization', async (t) => {
    const { post } = await prepared(t);
    for (const body of ['{', 'x'.repeat(2_000_000)]) {
      const refused = await post(body, { Authorization: 'Bearer vk_unknown' }, '/guarded');
      assert.equal(refused.body.code, 'unauthenticated');
    }
  });

  test('is not read by a route that takes no body', async (t) => {
    const { post } = await prepared(t);
    const { status, body } = await post('{broken', {}, '/bodiless');
    assert.deepEqual([status, body], [200, { body: 'undefined' }]);
  });

  test('is accepted with charset=utf-8 in any case and with a byte order mark', async (t) => {
    const { post } = await prepared(t);
    for (const type of ['application/json; charset=utf-8', 'Application/JSON;charset="UTF-8"']) {
      const { body } = await post('\ufeff{"word":"ü"}', { 'Content-Type': type });
      assert.deepEqual(body, { word: 'ü' }, type);
    }
  });
});
