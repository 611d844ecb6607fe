/**
 * The OpenAPI document, judged from outside: an independent validator, the route table, and proof that the checker
 * which holds all other tests' answers against it can fail.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import type { z } from 'zod';
import { createApiKeyInput, createCertificateInput } from '../../../src/domain/inputs.ts';
import { routes } from '../../harness/http/all-routes.ts';
import { type Answer, type ApiDocument, apiChecker } from '../../harness/http/api-checker.ts';
import { checkedServer } from '../../harness/http/checked.ts';
import { makeCertificate, makeKey } from '../../harness/http/fixtures.ts';

type Schema = {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly format?: string;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
};

suite('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1 in the eyes of an independent validator', async (t) => {
    const { document } = await checkedServer(t);
    const validator = new Validator();
    const result = await validator.validate(JSON.parse(JSON.stringify(document)));
    assert.deepEqual(result.errors ?? [], []);
    assert.equal(result.valid, true);
    assert.equal(validator.version, '3.1');
    assert.equal((document as unknown as { info: { version: string } }).info.version, '1.0.0');
  });

  test('has every route of the table, and the table has every operation of the document', async (t) => {
    const { document } = await checkedServer(t);
    const described = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    assert.deepEqual(described.toSorted(), routes.map(({ method, path }) => `${method} ${path}`).toSorted());
    const ids = routes.map(({ id }) => id);
    assert.equal(new Set(ids).size, ids.length, 'operation ids are unique');
  });

  test('has an enum, pattern or format for each request string that is not free text', async (t) => {
    const { document } = await checkedServer(t);
    const vague = new Set<string>();
    const visit = (schema: Schema, place: string): void => {
      const { $ref, type, anyOf = [], properties = {}, items, additionalProperties: rest } = schema;
      if ($ref !== undefined) visit(document.components.schemas[$ref.split('/').at(-1) ?? ''] ?? {}, place);
      if (type === 'string' && !schema.enum && !schema.pattern && !schema.format) vague.add(place);
      for (const part of anyOf) visit(part, place);
      for (const [name, part] of Object.entries(properties))
        visit(part, place.endsWith('[]') ? `${place}.${name}` : name);
      if (items !== undefined) visit(items, `${place}[]`);
      if (typeof rest === 'object') visit(rest, `${place}{}`);
    };
    for (const operation of Object.values(document.paths).flatMap((item) => Object.values(item))) {
      for (const parameter of operation.parameters) visit(parameter.schema, parameter.name);
      visit(operation.requestBody?.content['application/json']?.schema ?? {}, 'body');
    }
    const free = [
      ...[
        'If-None-Match',
        'Keystore-Password',
        'search',
        'files[].name',
        'files[].text',
        'password',
        'current',
        'new',
      ],
      // As the CA spells them.
      ...['eab_kid', 'eab_hmac_key', 'ca_pem', 'preferred_chain'],
      // As a client names them.
      ...['host', 'job', 'destination'],
      // Known to other operations: the types of DNS providers and channels, and what the audit log holds.
      ...['type', 'actor', 'action', 'resource'],
    ];
    assert.deepEqual([...vague].toSorted(), free.toSorted());
  });

  test('has schemas that accept and reject the same values as the vault', async (t) => {
    const { document } = await checkedServer(t);
    const body = document.paths['/api/v1/certificates']?.post?.requestBody?.content['application/json'];
    const keyBody = document.paths['/api/v1/api-keys']?.post?.requestBody?.content['application/json'];
    const matches = (schema: object | undefined, value: unknown) => {
      const ajv = new Ajv2020({ strict: false, validateSchema: false });
      formats.default(ajv);
      return ajv.compile(schema ?? false)(value);
    };
    const certificate = { name: 'web', domains: ['web.example.com'] };
    const key = { name: 'web', scopes: ['certificates:read'], certificates: ['web'] };
    const cases: readonly (readonly [
      object | undefined,
      z.ZodType,
      object,
      readonly object[],
      readonly object[],
    ])[] = [
      [
        body?.schema,
        createCertificateInput,
        certificate,
        [
          ...[
            '*.example.com',
            '192.0.2.7',
            '2001:db8::1',
            'bücher.example',
            '例え.jp',
            'A.Example.',
            'localhost',
          ].map((domain) => ({ domains: [domain] })),
          ...['*.web', 'a_b', 'x'.repeat(128)].map((name) => ({ name })),
          ...['1h', '90d', '10y'].map((lifetime) => ({ lifetime })),
          ...['http-01', 'dns-01', 'tls-alpn-01'].map((challenge) => ({ challenge })),
        ],
        [
          ...[
            'a b',
            'https://a.example',
            'a_b.example',
            'a@b.example',
            '*',
            'a.*.example',
            'fe80::1%eth0',
            '',
          ].map((domain) => ({ domains: [domain] })),
          ...['*', '.hidden', '-x', 'a/b', 'x'.repeat(129), ''].map((name) => ({ name })),
          ...['90', '0d', '-1d', '1w', 90].map((lifetime) => ({ lifetime })),
          ...[{ challenge: 'http' }, { key_type: 'rsa1024' }, { domains: [] }, { other: 1 }],
        ],
      ],
      [
        keyBody?.schema,
        createApiKeyInput,
        key,
        [
          ...['*', '10.0.0.0/8', '192.0.2.7', '2001:db8::/32', ' 10.0.0.1 '].map((network) => ({
            allowed_networks: [network],
          })),
          ...['2030-01-31T00:00:00Z', '2030-01-31T00:00:00.5+01:00'].map((expires_at) => ({ expires_at })),
          { certificates: ['*'] },
        ],
        [
          ...['any', '10.0.0.0/8/8', '10.0.0.0-10.0.0.9', ''].map((network) => ({
            allowed_networks: [network],
          })),
          ...['2030-01-31', 'tomorrow', '2030-13-01T00:00:00Z'].map((expires_at) => ({ expires_at })),
          ...[{ scopes: ['all'] }, { certificates: ['.'] }, { name: 'a\nb' }, { name: '' }],
        ],
      ],
    ];
    for (const [schema, validator, base, good, bad] of cases) {
      for (const [expected, changes] of [
        [true, good],
        [false, bad],
      ] as const) {
        for (const change of changes) {
          const value = { ...base, ...change };
          const place = JSON.stringify(change);
          assert.equal(validator.safeParse(value).success, expected, `the vault: ${place}`);
          assert.equal(matches(schema, value), expected, `the document: ${place}`);
        }
      }
    }
  });

  test('has every endpoint of the interface specification', async (t) => {
    const { document } = await checkedServer(t);
    const certificate = '/api/v1/certificates/{name}';
    const specified = [
      'get /api/v1/certificates',
      `get ${certificate}`,
      ...[
        'versions',
        'certificate.crt',
        'chain.crt',
        'fullchain.crt',
        'private.key',
        'fullchain.pem',
        'private-key.pem',
      ].map((last) => `get ${certificate}/${last}`),
      `post ${certificate}/renew`,
      'get /api/v1/health',
      'get /api/v1/ready',
      'get /api/v1/acme-accounts',
      'delete /api/v1/acme-accounts/{id}',
    ];
    for (const place of specified) {
      const [method = '', path = ''] = place.split(' ');
      assert(document.paths[path]?.[method], place);
    }
  });

  test('demands a key or a session, or a session alone where the route is about the session', async (t) => {
    const { document } = await checkedServer(t);
    const expected = {
      public: [],
      scope: [{ apiKey: [] }, { session: [] }],
      authenticated: [{ apiKey: [] }, { session: [] }],
      administrator: [{ apiKey: [] }, { session: [] }],
      session: [{ session: [] }],
      metrics: [],
    };
    for (const { method, path, access, problems, protocol } of routes) {
      const operation = document.paths[path]?.[method.toLowerCase()];
      const isPersonal = access.kind === 'administrator' && access.isPersonal === true;
      const security = expected[isPersonal ? 'session' : access.kind];
      assert.deepEqual(operation?.security, security, `${method} ${path}`);
      const isAcme = protocol !== undefined;
      const mayRefuse = isAcme || ['scope', 'authenticated', 'session'].includes(access.kind);
      const may401 = mayRefuse || problems.includes('unauthenticated');
      assert.equal('401' in (operation?.responses ?? {}), may401, `${method} ${path}`);
    }
  });

  test('has no component that is a reference, and no reference without a component', async (t) => {
    const { document } = await checkedServer(t);
    for (const [name, schema] of Object.entries(document.components.schemas)) {
      assert('type' in schema && !('$ref' in schema) && !('id' in schema), name);
    }
    const references = JSON.stringify(document).matchAll(/"\$ref":"([^"]*)"/g);
    for (const [, reference = ''] of references) {
      const name = /^#\/components\/schemas\/(\w+)$/.exec(reference)?.[1];
      assert(name !== undefined && name in document.components.schemas, reference);
    }
  });

  test('is served without credentials', async (t) => {
    const server = await checkedServer(t);
    const response = await server.get('/api/v1/openapi.json');
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('Content-Type'), 'application/json');
  });
});

suite('apiChecker', () => {
  const target = '/api/v1/certificates/www';

  /** A document, an answer that is as declared, and a check of changes to both. */
  async function prepared(t: Parameters<typeof checkedServer>[0]) {
    const server = await checkedServer(t);
    await makeCertificate(server.vault, 'www');
    const { raw } = await makeKey(server.vault);
    let count = 0;
    const answerTo = async (path: string): Promise<Answer> => {
      const { status, headers, ...response } = await server.raw('GET', path, [
        `Authorization: Bearer ${raw}`,
      ]);
      return { method: 'GET', target: path, status, headers, body: response.body };
    };
    const judge = (
      answer: Answer,
      changes: Partial<Answer> = {},
      document: ApiDocument = server.document,
    ) => {
      const headers = new Headers(changes.headers ?? answer.headers);
      count += 1;
      if (headers.has('X-Request-Id')) headers.set('X-Request-Id', `again-${count}`);
      apiChecker(document)({ ...answer, ...changes, headers });
    };
    const without = (answer: Answer, name: string) => {
      const headers = new Headers(answer.headers);
      headers.delete(name);
      return { headers };
    };
    const withHeader = (answer: Answer, name: string, value: string) => {
      const headers = new Headers(answer.headers);
      headers.set(name, value);
      return { headers };
    };
    return { server, answerTo, judge, without, withHeader };
  }

  test('accepts a declared response and rejects an undeclared status, type, member or value', async (t) => {
    const { answerTo, judge, withHeader } = await prepared(t);
    const answer = await answerTo(target);
    judge(answer);
    const json = JSON.parse(answer.body);
    const changed = (changes: object) => ({ body: JSON.stringify({ ...json, ...changes }) });
    assert.throws(() => judge(answer, { status: 299 }), /the status is not declared/);
    assert.throws(() => judge(answer, withHeader(answer, 'Content-Type', 'text/html')), /content type/);
    assert.throws(() => judge(answer, changed({ private_key: 'x' })), /must NOT have additional properties/);
    assert.throws(() => judge(answer, changed({ status: 'fine' })), /allowed values/);
    assert.throws(() => judge(answer, changed({ created_at: 'yesterday' })), /date-time/);
    assert.throws(() => judge(answer, changed({ name: undefined })), /required property/);
    assert.throws(() => judge(answer, { body: '{' }), SyntaxError);
  });

  test('rejects missing and undeclared headers, and repeated request ids', async (t) => {
    const { answerTo, judge, without, withHeader, server } = await prepared(t);
    const answer = await answerTo(`${target}/fullchain.pem`);
    judge(answer);
    assert.throws(() => judge(answer, without(answer, 'ETag')), /ETag is declared and was not sent/);
    assert.throws(() => judge(answer, without(answer, 'X-Request-Id')), /X-Request-Id/);
    assert.throws(() => judge(answer, withHeader(answer, 'Location', '/')), /Location was sent/);
    const check = apiChecker(server.document);
    check(answer);
    assert.throws(() => check(answer), /was used before/);
  });

  test('rejects responses of undeclared operations, and undeclared bodies', async (t) => {
    const { answerTo, judge, server } = await prepared(t);
    const answer = await answerTo(target);
    assert.throws(() => judge(answer, { target: '/api/v1/secrets' }), /nothing is declared here/);
    assert.throws(() => judge(answer, { method: 'POST' }), /nothing is declared here/);
    const { '/api/v1/certificates/{name}': _, ...paths } = server.document.paths;
    assert.throws(() => judge(answer, {}, { ...server.document, paths }), /nothing is declared here/);
    const download = await answerTo(`${target}/chain.crt`);
    assert.throws(
      () => judge(download, { status: 304 }),
      /was sent and is not declared|no content is declared/,
    );
    assert.throws(() => judge(answer, { method: 'HEAD' }), /HEAD has no body/);
  });
});
