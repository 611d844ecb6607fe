/**
 * The OpenAPI document, judged from outside: an independent validator, the route table, and proof that the checker
 * which holds all other tests' answers against it can fail.
 */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { routes } from '../../harness/all-routes.ts';
import { type Answer, type ApiDocument, apiChecker } from '../../harness/http-api-checker.ts';
import { checkedServer } from '../../harness/http-checked.ts';
import { makeCertificate, makeKey } from '../../harness/http-fixtures.ts';

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

  test('demands a key or a session where the route has a scope, and a session where it is for administrators', async (t) => {
    const { document } = await checkedServer(t);
    const expected = {
      public: [],
      scope: [{ apiKey: [] }, { session: [] }],
      authenticated: [{ apiKey: [] }, { session: [] }],
      administrator: [{ session: [] }],
      session: [{ session: [] }],
      metrics: [],
    };
    for (const { method, path, access, problems } of routes) {
      const operation = document.paths[path]?.[method.toLowerCase()];
      assert.deepEqual(operation?.security, expected[access.kind], `${method} ${path}`);
      const mayRefuse = ['scope', 'authenticated', 'session'].includes(access.kind);
      const may401 = mayRefuse || problems.includes('unauthenticated');
      assert.equal('401' in (operation?.responses ?? {}), may401, `${method} ${path}`);
    }
  });

  test('describes each component by what it is, not by a reference', async (t) => {
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

suite('the checker of answers', () => {
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

  test('accepts what is declared and refuses a status, type, member or value that is not', async (t) => {
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

  test('refuses headers that are missing or not declared, and request ids that repeat', async (t) => {
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

  test('refuses success where nothing is declared, and a body where none is', async (t) => {
    const { answerTo, judge, server } = await prepared(t);
    const answer = await answerTo(target);
    assert.throws(() => judge(answer, { target: '/api/v1/secrets' }), /nothing is declared here/);
    assert.throws(() => judge(answer, { method: 'PUT' }), /nothing is declared here/);
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
