/**
 * Checks responses of the server with its own OpenAPI document: status, content type, headers and JSON bodies must be
 * declared there. Does not use the route table, so that the document is checked on its own.
 */
import assert from 'node:assert/strict';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { headerComplaints } from './security-headers.ts';

export type Answer = {
  readonly method: string;
  /** The request target, with its query. */
  readonly target: string;
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
};

export type Operation = {
  readonly operationId: string;
  readonly description?: string;
  readonly security: readonly object[];
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly schema: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, DeclaredAnswer>>;
};

type DeclaredAnswer = {
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, { readonly schema: object }>>;
};

export type ApiDocument = {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
};

/** Headers that must be declared if they are sent. */
const tellingHeaders = [
  'Allow',
  'Certificate-Version',
  'Content-Disposition',
  'ETag',
  'Link',
  'Location',
  'Retry-After',
  'WWW-Authenticate',
  'X-Request-Id',
];

/** Declared headers that are optional; a pause is so where nothing was refused. */
const sometimes = ['Link'];

/** Returns a function that throws an AssertionError if a response does not match the document. */
export function apiChecker(document: ApiDocument): (answer: Answer) => void {
  const ajv = new Ajv2020({ strict: false, validateSchema: false });
  formats.default(ajv);
  const compiled = new Map<object, ValidateFunction>();
  for (const [name, schema] of Object.entries(document.components.schemas))
    ajv.addSchema(byName(schema), name);
  const problem = { $ref: '#/components/schemas/Problem' };
  const requestIds = new Set<string>();

  return (answer) => {
    const { method, target, status, headers } = answer;
    const place = `${method} ${target.slice(0, 200)} → ${status}`;
    const requestId = headers.get('X-Request-Id');
    assert.match(requestId ?? '', /^[\w-]+$/, `${place}: X-Request-Id`);
    assert(!requestIds.has(requestId ?? ''), `${place}: the request id ${requestId} was used before`);
    requestIds.add(requestId ?? '');
    assert.deepEqual(headerComplaints(headers), [], place);

    const { path, operation } = operationAt(document, method, target);
    if (path === undefined || operation === undefined) {
      const expected = path === undefined ? [400, 404] : [405];
      assert(expected.includes(status), `${place}: nothing is declared here, expected ${expected}`);
      if (status === 405) assert(headers.has('Allow'), `${place}: Allow is missing`);
      // Paths of another protocol than the API have its problems for other methods, too.
      const [known] = Object.values(path?.startsWith('/acme/') ? (document.paths[path] ?? {}) : {});
      checkContent(
        place,
        known?.responses[404]?.content ?? { 'application/problem+json': { schema: problem } },
        answer,
      );
      return;
    }
    const declared = operation.responses[status];
    assert(declared, `${place}: the status is not declared`);
    // Only some successes and 304s say when to look again, and only some conflicts are with another resource.
    const ownSometimes = status < 400 ? ['Retry-After'] : status === 409 ? ['Location'] : [];
    checkHeaders(place, Object.keys(declared.headers ?? {}), headers, [...sometimes, ...ownSometimes]);
    checkContent(place, declared.content ?? {}, answer);
  };

  function checkContent(
    place: string,
    declared: NonNullable<DeclaredAnswer['content']>,
    { method, headers, body }: Answer,
  ): void {
    const type = headers.get('Content-Type');
    if (Object.keys(declared).length === 0) {
      assert.deepEqual({ type, body }, { type: null, body: '' }, `${place}: no content is declared`);
      return;
    }
    // Without parameters such as a charset, except for JSON, where they matter.
    const essence = /^text\//.test(type ?? '') ? type?.split(';', 1)[0] : type;
    const schema = declared[essence ?? '']?.schema;
    assert(schema, `${place}: the content type ${type} is not declared`);
    if (method === 'HEAD') assert.equal(body, '', `${place}: HEAD has no body`);
    else if (/[/+]json$/.test(type ?? '')) checkJson(place, schema, JSON.parse(body));
  }

  function checkJson(place: string, schema: object, value: unknown): void {
    const validate = compiled.get(schema) ?? ajv.compile(byName(schema));
    compiled.set(schema, validate);
    assert(validate(value), `${place}: ${ajv.errorsText(validate.errors)}`);
  }
}

/** The schema with references to components by the names added to ajv. */
function byName(schema: object): object {
  return JSON.parse(JSON.stringify(schema).replaceAll('"#/components/schemas/', '"'));
}

function checkHeaders(
  place: string,
  declared: readonly string[],
  headers: Headers,
  mayLack: readonly string[],
): void {
  for (const name of declared) {
    assert(mayLack.includes(name) || headers.has(name), `${place}: ${name} is declared and was not sent`);
  }
  for (const name of tellingHeaders) {
    assert(!headers.has(name) || declared.includes(name), `${place}: ${name} was sent and is not declared`);
  }
}

/** The path and operation of the document for a request; HEAD uses the operation of GET. */
export function operationAt(
  document: ApiDocument,
  method: string,
  target: string,
): { readonly path: string | undefined; readonly operation: Operation | undefined } {
  const path = pathOf(document, target);
  const verb = method === 'HEAD' ? 'get' : method.toLowerCase();
  return { path, operation: path === undefined ? undefined : document.paths[path]?.[verb] };
}

/** The path template that matches the target; a literal segment wins over a parameter. */
function pathOf({ paths }: ApiDocument, target: string): string | undefined {
  const path = target.replace(/^https?:\/\/[^/?#]+/i, '').split('?', 1)[0] ?? '';
  const parts = path.split('/');
  if (!isDecodable(path)) return undefined;
  const fitting = Object.keys(paths).filter((known) => {
    const pattern = known.split('/');
    return (
      pattern.length === parts.length &&
      pattern.every((part, index) => (part.startsWith('{') ? parts[index] !== '' : part === parts[index]))
    );
  });
  return fitting.toSorted((a, b) => a.split('{').length - b.split('{').length)[0];
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    // A URIError: no path matches.
    return false;
  }
}
