/**
 * Generates requests for an operation of the API document: valid, with one error, or hostile in the path, the query,
 * the headers or the body. Uses only the document and a vocabulary of meaningful values, not the routes.
 */
import fc, { type Arbitrary } from 'fast-check';
import type { Operation } from '../harness/http/api-checker.ts';
import type { WireRequest } from './fuzz-client.ts';
import { anyText, hostileTexts, jsonText, type Schema, spoiled, valid, type Words } from './fuzz-values.ts';

export type Place = { readonly method: string; readonly path: string; readonly operation: Operation };

/** Written to a path unchanged. */
const hostileSegments = [
  ...[
    '%00',
    'www%00',
    'www%00.png',
    '%2e',
    '%2e%2e',
    '..',
    '.',
    '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    '..%5c..%5cx',
    'www%2fversions',
  ],
  ...[
    'www%2F..%2Fimported',
    '%252e%252e',
    '%c0%ae%c0%ae',
    '%c0%af',
    '%e0%80%af',
    '%ff',
    '%fe%ff',
    '%ed%a0%80',
    '%f0%9f%94%91',
  ],
  ...[
    '%',
    '%2',
    '%zz',
    '%u0077ww',
    'w%77w',
    'WWW',
    'www;x=1',
    'www,imported',
    '*',
    '%2a',
    '{name}',
    ':name',
    '%20www',
    'www%0d%0aX:1',
  ],
  ...[
    'e%cc%81',
    '%c3%a9',
    '%ef%bc%b7ww',
    'www%e2%80%8b',
    '1'.repeat(30),
    '-1',
    '1e3',
    '0x1',
    '+1',
    '01',
    '1.0',
    '%31',
    '9007199254740993',
  ],
  ...[
    'a'.repeat(200),
    'a'.repeat(4000),
    '%61'.repeat(1500),
    '__proto__',
    'constructor',
    'toString',
    '0',
    '999999999999999',
  ],
];

const methods = [
  'HEAD',
  'OPTIONS',
  'TRACE',
  'PUT',
  'PATCH',
  'DELETE',
  'POST',
  'GET',
  'QUERY',
  'PROPFIND',
  'PURGE',
  'M-SEARCH',
  'LINK',
];

/** Changes to a whole request target. */
const bends: readonly ((target: string) => string)[] = [
  (target) => `/${target}`,
  (target) => target.replace(/(\?|$)/, '/$1'),
  (target) => target.replace('/api/', '/./api/'),
  (target) => `/x/..${target}`,
  (target) => target.replace('/v1/', '/v1/%2e/'),
  (target) => target.replace('/v1/', '%2fv1/'),
  (target) => target.replace('/v1/', '//v1/'),
  (target) => target.replace('/v1/', '\\v1\\'),
  (target) => target.replace('/api/', '/API/'),
  (target) => target.replace(/(\?|$)/, ';jsessionid=1$1'),
  (target) => target.replace(/(\?|$)/, '.json$1'),
  (target) => target.replace(/(\?|$)/, '%00$1'),
  (target) => `${target}#fragment`,
  (target) => `${target}??`,
  (target) => `http://elsewhere.test${target}`,
  (target) => `HTTPS://user@elsewhere.test:1${target}`,
];

/** Headers that programs, proxies or attackers send. None may have an undocumented effect. */
const oddHeaders: readonly WireRequest['headers'][] = [
  ...[
    { Accept: '*/*' },
    { Accept: 'text/html' },
    { Accept: 'image/png;q=0' },
    { Accept: ';;;,,,' },
    { Accept: 'a'.repeat(3000) },
  ],
  ...[
    { 'Accept-Encoding': 'gzip, br' },
    { 'Accept-Encoding': 'identity;q=0, *;q=0' },
    { 'Accept-Charset': 'utf-7' },
  ],
  ...[
    { Range: 'bytes=0-0' },
    { Range: 'bytes=9-1,-' },
    { 'If-Match': '"x"' },
    { 'If-Match': '*' },
    { 'If-Modified-Since': 'never' },
  ],
  ...[
    { 'If-None-Match': '*' },
    { 'If-None-Match': '"' },
    { 'If-None-Match': ['"a"', 'W/"b"'] },
    { 'If-Range': '"x"' },
  ],
  ...[
    { Origin: 'null' },
    { Origin: 'http://[' },
    { Origin: 'https://elsewhere.test' },
    { 'Sec-Fetch-Site': 'same-origin, cross-site' },
  ],
  ...[{ Host: 'elsewhere.test' }, { Host: 'a'.repeat(300) }, { Host: '[::1]:99999' }, { Host: '' }],
  ...[
    { 'X-HTTP-Method-Override': 'DELETE' },
    { 'X-Original-URL': '/api/v1/about' },
    { 'X-Rewrite-URL': '/api/v1/about' },
  ],
  ...[
    { Forwarded: 'for="[::1]";proto=https;host=x' },
    { 'X-Forwarded-For': ['1.2.3.4', 'x, ::1'] },
    { 'X-Forwarded-Proto': 'https' },
  ],
  ...[
    { 'X-Request-Id': 'mine' },
    { 'User-Agent': '\xff\xfe' },
    { 'User-Agent': 'u'.repeat(4000) },
    { 'User-Agent': '' },
  ],
  ...[
    { Cookie: '__proto__=1; vault_session' },
    { Cookie: ['vault_session=a', 'vault_session=b'] },
    { Cookie: '='.repeat(2000) },
  ],
  ...[{ Authorization: 'Bearer' }, { Authorization: 'bearer vk_.' }, { 'Proxy-Authorization': 'Basic Og==' }],
  ...[
    { Connection: 'close' },
    { Expect: '100-continue' },
    { Expect: 'tea' },
    { Upgrade: 'h2c', Connection: 'Upgrade' },
    { TE: 'trailers' },
  ],
  ...[
    { 'Access-Control-Request-Method': 'DELETE', Origin: 'https://elsewhere.test' },
    { __proto__: 'x' },
    { Constructor: 'x' },
  ],
];

const bodyTypes = [
  ...[
    'application/json; charset=utf-8',
    'Application/JSON',
    'application/json;charset=utf-16',
    'application/json; charset=utf-7',
  ],
  ...[
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/problem+json',
  ],
  ...[
    'application/json, text/plain',
    'application/json;',
    '',
    'x',
    'application/jsonx',
    'text/json',
    'application/merge-patch+json',
  ],
];

/** Bodies that are not JSON, almost JSON, or hostile JSON. */
const oddBodies: readonly Buffer[] = [
  ...[
    '',
    ' ',
    '\0',
    'null',
    'true',
    '0',
    '""',
    '[]',
    '{}',
    '[[]]',
    '{',
    '}',
    '{"a"',
    '{"a":}',
    '{"a":1,}',
    "{'a':1}",
    '{a:1}',
    '// x\n{}',
  ],
  ...[
    'NaN',
    'Infinity',
    '-',
    '01',
    '1e999',
    '-1e999',
    '1'.repeat(5000),
    '"\\ud800"',
    '"\\u0000"',
    '"\\x41"',
    '"\n"',
    '{}{}',
    '{} x',
  ],
  ...[
    '{"name":"www","name":"imported"}',
    '{"__proto__":{"force":true}}',
    '{"constructor":{"prototype":{"x":1}}}',
    '{"":{"":{"":{}}}}',
  ],
  ...[
    '['.repeat(100_000),
    '{"a":'.repeat(100_000),
    `${'['.repeat(20_000)}${']'.repeat(20_000)}`,
    `{"config":${'{"a":'.repeat(20_000)}1${'}'.repeat(20_001)}`,
  ],
  ...[
    '\uFEFF{}',
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
    'a=1&b=2',
  ],
  ...[
    `"${'a'.repeat(300_000)}"`,
    `[${'0,'.repeat(50_000)}0]`,
    `{${Array.from({ length: 20_000 }, (_, at) => `"k${at}":0`).join()}}`,
  ],
]
  .map((text) => Buffer.from(text))
  .concat(
    [
      [0xff],
      [0xc0, 0xaf],
      [0xed, 0xa0, 0x80],
      [0x22, 0xe9, 0x22],
      [0xfe, 0xff, 0x00, 0x7b],
      [0x1f, 0x8b, 0x08, 0x00],
      [0, 0, 0, 0x7b],
    ].map((bytes) => Buffer.from(bytes)),
  );

const longBody = Buffer.alloc(5 * 1_048_576, ' ');

/** All kinds of requests to the operation, without credentials. */
export function requestsTo(place: Place, words: Words): Arbitrary<WireRequest> {
  const usual = fc.record({
    method: fc.constant(place.method),
    target: targets(place, words),
    headers: fc.constant(requiredHeaders(place.operation)),
    body: bodies(place, words),
  });
  const withBody = (request: typeof usual) =>
    request.map(({ body, ...rest }) => (body === undefined ? { ...rest, body } : asJson({ ...rest, body })));
  const bent = fc
    .tuple(usual, fc.constantFrom(...bends))
    .map(([one, bend]) => ({ ...one, target: bend(one.target) }));
  const otherMethod = fc
    .tuple(usual, fc.constantFrom(...methods))
    .map(([one, method]) => ({ ...one, method }));
  const otherHeaders = fc
    .tuple(usual, fc.subarray([...oddHeaders], { minLength: 1, maxLength: 4 }))
    .map(([one, odd]) => ({ ...one, headers: Object.assign({}, ...odd) as WireRequest['headers'] }));
  return fc.oneof(
    { weight: 6, arbitrary: withBody(usual) },
    { weight: 1, arbitrary: withBody(bent) },
    { weight: 1, arbitrary: withBody(otherMethod) },
    { weight: 2, arbitrary: withBody(otherHeaders) },
    { weight: 2, arbitrary: oddlySent(usual) },
  );
}

/** Only valid requests, for an operation without a body. */
export function validRequestsTo({ method, path, operation }: Place, words: Words): Arbitrary<WireRequest> {
  const target = fc.tuple(segmentsOf(path, words, knownSegment), queryOf(operation, words));
  const headers = requiredHeaders(operation);
  return target.map((parts) => ({ method, target: parts.join(''), headers, body: undefined }));
}

function asJson(request: WireRequest): WireRequest {
  return { ...request, headers: { 'Content-Type': 'application/json', ...request.headers } };
}

function toBytes(value: unknown): Buffer {
  return Buffer.from(jsonText(value));
}

function bodySchema({ requestBody }: Operation): Schema | undefined {
  return requestBody?.content['application/json']?.schema;
}

function bodies({ operation }: Place, words: Words): Arbitrary<Buffer | undefined> {
  const schema = bodySchema(operation);
  const odd = fc.constantFrom(...oddBodies);
  if (schema === undefined)
    return fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: odd });
  const good = valid(schema, words);
  return fc.oneof(
    { weight: 5, arbitrary: good.map(toBytes) },
    { weight: 4, arbitrary: spoiled(good).map(toBytes) },
    { weight: 2, arbitrary: spoiled(spoiled(good)).map(toBytes) },
    { weight: 2, arbitrary: odd },
  );
}

/** The body with a wrong or unusual content type, or with too many bytes. */
function oddlySent(usual: Arbitrary<WireRequest>): Arbitrary<WireRequest> {
  const declared = fc.oneof(
    fc.constantFrom(...bodyTypes).map((type) => ({ 'Content-Type': type })),
    fc
      .constantFrom('gzip', 'identity', 'br, gzip', 'chunked', 'x')
      .map((coding) => ({ 'Content-Type': 'application/json', 'Content-Encoding': coding })),
    fc
      .constantFrom('chunked')
      .map((coding) => ({ 'Content-Type': 'application/json', 'Transfer-Encoding': coding })),
    fc.constant({}),
  );
  const body = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...oddBodies) },
    { weight: 1, arbitrary: fc.constant(longBody) },
  );
  return fc
    .tuple(usual, declared, fc.option(body, { nil: undefined }))
    .map(([one, headers, other]) => ({ ...one, headers, body: other ?? one.body ?? Buffer.from('{}') }));
}

function targets({ path, operation }: Place, words: Words): Arbitrary<string> {
  const segment = (name: string, known: readonly unknown[]) =>
    fc.oneof(
      { weight: 5, arbitrary: knownSegment(name, known) },
      { weight: 2, arbitrary: fc.constantFrom(...hostileSegments) },
      { weight: 1, arbitrary: anyText.map((text) => encodeURIComponent(text.toWellFormed())) },
    );
  const query = fc.oneof(
    { weight: 5, arbitrary: queryOf(operation, words) },
    { weight: 2, arbitrary: hostileQuery(operation) },
  );
  return fc.tuple(segmentsOf(path, words, segment), query).map((parts) => parts.join(''));
}

function segmentsOf(
  path: string,
  words: Words,
  segment: (name: string, known: readonly unknown[]) => Arbitrary<string>,
): Arbitrary<string> {
  // `{name}` has other valid values for certificates than for issuers, so the collection matters.
  const parts = path.split('/').map((part, index, all) => {
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    return name === undefined
      ? fc.constant(part)
      : segment(name, words[`${all[index - 1]}/{${name}}`] ?? ['1']);
  });
  return fc.tuple(...parts).map((all) => all.join('/'));
}

function knownSegment(_: string, known: readonly unknown[]): Arbitrary<string> {
  return fc.constantFrom(...known).map((word) => encodeURIComponent(String(word)));
}

/** The headers without which a request is refused. The only one is a password, which any text will do for. */
function requiredHeaders({ parameters }: Operation): WireRequest['headers'] {
  const required = parameters.filter((one) => one.in === 'header' && one.required);
  return Object.fromEntries(required.map(({ name }) => [name, 'changeit']));
}

function queryOf({ parameters }: Operation, words: Words): Arbitrary<string> {
  const queries = parameters.filter((one) => one.in === 'query');
  if (queries.length === 0) return fc.constant('');
  const model = Object.fromEntries(
    queries.map(({ name, schema }) => [name, valid(schema, words, `?${name}`)]),
  );
  return fc.record(model, { requiredKeys: [] }).map((values) => {
    const search = new URLSearchParams(Object.entries(values).map(([name, value]) => [name, String(value)]));
    return search.size === 0 ? '' : `?${search}`;
  });
}

function hostileQuery({ parameters }: Operation): Arbitrary<string> {
  const known = parameters.filter((one) => one.in === 'query').map(({ name }) => name);
  const name = fc.constantFrom(
    ...known,
    ...known,
    'x',
    '__proto__',
    'constructor',
    'limit[]',
    'limit%5B%24gt%5D',
    '',
    '%00',
    '%ff',
    '%',
  );
  const value = fc.oneof(
    fc.constantFrom(...hostileTexts).map((text) => encodeURIComponent(text.toWellFormed())),
    fc.constantFrom(
      '%',
      '%ff',
      '%00',
      '%c0%af',
      '=',
      '&',
      '+',
      '%2B',
      '1%00',
      '1;2',
      '1,2',
      '1e3',
      ' 1'.trim(),
      '%201',
    ),
  );
  const pair = fc.tuple(name, value).map(([left, right]) => `${left}=${right}`);
  const some = fc.array(pair, { minLength: 1, maxLength: 4 });
  return fc
    .oneof(
      some,
      some.map((pairs) => [...pairs, ...pairs]),
    )
    .map((pairs) => `?${pairs.join('&')}`);
}
