/** The OpenAPI 3.1 document, generated from the table that serves the requests. */
import { z } from 'zod';
import { certNamePattern } from '../../base/cert-name.ts';
import { type ProblemCode, statusOf } from '../../base/problem.ts';
import { administratorNamePattern } from '../../domain/access/administrator-inputs.ts';
import { issuerNamePattern } from '../../domain/input-strings.ts';
import { roleFor } from '../auth/operation-roles.ts';
import { sessionCookie } from '../auth/session-cookie.ts';
import type { Access, DeclaredReply, Protocol, Route } from '../request/route.ts';
import { headers } from './header-descriptions.ts';
import { problemSchema } from './schemas.ts';

type Json = Record<string, unknown>;

const headersOfProblems: Partial<Record<ProblemCode, string>> = {
  unauthenticated: 'WWW-Authenticate',
  unavailable: 'Retry-After',
  rate_limited: 'Retry-After',
};

/** The credentials that a route accepts, and the problems for other requests. */
const guards: Readonly<
  Record<Access['kind'], { security: readonly Json[]; problems: readonly ProblemCode[] }>
> = {
  public: { security: [], problems: [] },
  scope: {
    security: [{ apiKey: [] }, { session: [] }],
    problems: ['unauthenticated', 'forbidden', 'rate_limited'],
  },
  authenticated: {
    security: [{ apiKey: [] }, { session: [] }],
    problems: ['unauthenticated', 'forbidden', 'rate_limited'],
  },
  metrics: { security: [], problems: ['unauthenticated', 'rate_limited'] },
  administrator: { security: [{ apiKey: [] }, { session: [] }], problems: ['forbidden', 'rate_limited'] },
  session: { security: [{ session: [] }], problems: ['unauthenticated', 'forbidden', 'rate_limited'] },
};

/** All problems that a route can respond with: its own, and those of its access, its query and internal errors. */
export function problemsOf({ access, body, problems, approval }: Route): ProblemCode[] {
  const all: ProblemCode[] = [
    'invalid_request',
    ...(body === undefined ? [] : (['payload_too_large'] as const)),
    ...guards[access.kind].problems,
    ...(approval === undefined ? [] : (['approval_required', 'rate_limited'] as const)),
    ...problems,
    'internal',
    'unavailable',
  ];
  return [...new Set(all)];
}

/** The document for these routes. Its `version` is that of the API: 1.0.0 in the specification. */
export function openApiDocument(routes: readonly Route[], productVersion: string): Json {
  const schemas: Json = {};
  const paths: Record<string, Json> = {};
  for (const route of routes) {
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: operation(route, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Certificate Vault',
      version: '1.0.0',
      description: `Stores, renews and serves TLS certificates and private keys. Served by version ${productVersion}.`,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      schemas,
      securitySchemes: {
        apiKey: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key, as printed by "vault api-key create".',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: sessionCookie,
          description: `An administrator's session; over HTTPS the cookie is named __Host-${sessionCookie}.`,
        },
      },
    },
  };
}

function operation(route: Route, schemas: Json): Json {
  const { access } = route;
  return {
    operationId: route.id,
    summary: route.summary,
    security:
      access.kind === 'administrator' && access.isPersonal === true
        ? guards.session.security
        : guards[access.kind].security,
    ...(access.kind === 'administrator' && {
      description: `Requires the role \`${roleFor(route.id)}\`${access.isPersonal === true ? '' : ', of an administrator or an API key'}.`,
    }),
    ...(access.kind === 'scope' && {
      description: `Requires the scope ${[access.scope, access.orScope].flatMap((scope) => (scope === undefined ? [] : `\`${scope}\``)).join(' or ')} or an administrator's session.`,
    }),
    parameters: [...pathParameters(route), ...queryParameters(route, schemas), ...headerParameters(route)],
    ...requestBody(route, schemas),
    responses: { ...successes(route, schemas), ...failures(route, schemas) },
  };
}

function pathParameters({ path }: Route): Json[] {
  const segments = path.split('/');
  return segments.flatMap((segment, at) =>
    segment.startsWith('{')
      ? {
          name: segment.slice(1, -1),
          in: 'path',
          required: true,
          schema: { type: 'string', pattern: pathPatterns[segments[at - 1] ?? ''] ?? '^[1-9]\\d{0,15}$' },
        }
      : [],
  );
}

/** What stands after these collections; ids after all others. */
const pathPatterns: Readonly<Record<string, string>> = {
  'acme-challenge': '^[\\w-]+$',
  acme: issuerNamePattern,
  '{order}': '^\\d{1,15}$',
  '{position}': '^[a-z\\d-]+$',
  administrators: administratorNamePattern,
  certificates: certNamePattern,
  'dns-providers': issuerNamePattern,
  issuers: issuerNamePattern,
  'notification-channels': issuerNamePattern,
  profiles: issuerNamePattern,
};

function queryParameters({ query }: Route, schemas: Json): Json[] {
  if (query === undefined) return [];
  const { properties } = jsonSchema(query, schemas) as { properties: Record<string, Json> };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    name,
    in: 'query',
    required: false,
    ...(description !== undefined && { description }),
    schema,
  }));
}

function requestBody({ body, bodyTypes = {}, protocol }: Route, schemas: Json): Json {
  if (body === undefined) return {};
  if (protocol !== undefined) {
    const content = { [protocol.bodyType]: { schema: jsonSchema(body, schemas, 'input') } };
    return { requestBody: { required: true, content } };
  }
  const others = Object.keys(bodyTypes).map((type) => [type, { schema: { type: 'string' } }]);
  const content = {
    'application/json': { schema: jsonSchema(body, schemas, 'input') },
    ...Object.fromEntries(others),
  };
  return { requestBody: { required: true, content } };
}

function headerParameters({ replies, requestHeaders = [] }: Route): Json[] {
  const description = 'entity tags that the client holds, or `*` (RFC 9110 §13.1.2)';
  const condition = { name: 'If-None-Match', required: false, description };
  const all = replies[304] === undefined ? requestHeaders : [condition, ...requestHeaders];
  return all.map((header) => ({ ...header, in: 'header', schema: { type: 'string' } }));
}

function successes({ replies }: Route, schemas: Json): Json {
  return Object.fromEntries(
    Object.entries(replies).map(([status, reply]) => [
      status,
      {
        description: reply.description,
        headers: headers(['X-Request-Id', ...(reply.headers ?? [])]),
        ...content(reply, schemas),
      },
    ]),
  );
}

function content(reply: DeclaredReply, schemas: Json): Json {
  if ('schema' in reply)
    return { content: { 'application/json': { schema: jsonSchema(reply.schema, schemas) } } };
  if (reply.contentType === 'none') return {};
  const types = [reply.contentType ?? []].flat();
  return { content: Object.fromEntries(types.map((type) => [type, { schema: { type: 'string' } }])) };
}

function failures(route: Route, schemas: Json): Json {
  if (route.protocol !== undefined) return failuresOf(route.protocol, route, schemas);
  const byStatus = new Map<number, ProblemCode[]>();
  for (const code of problemsOf(route)) {
    byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  }
  const declared = [...byStatus].filter(([status]) => route.replies[status] === undefined);
  return Object.fromEntries(
    declared.map(([status, codes]) => [
      String(status),
      {
        description: codes.join(', '),
        headers: headers(['X-Request-Id', ...codes.flatMap((code) => headersOfProblems[code] ?? [])]),
        content: { 'application/problem+json': { schema: jsonSchema(problemSchema, schemas) } },
      },
    ]),
  );
}

/** Those of another protocol. */
function failuresOf(
  { failures: all, problemSchema: schema }: Protocol,
  { replies }: Route,
  schemas: Json,
): Json {
  const declared = Object.entries(all).filter(([status]) => replies[Number(status)] === undefined);
  const content = { 'application/problem+json': { schema: jsonSchema(schema, schemas) } };
  return Object.fromEntries(
    declared.map(([status, { description, headers: names }]) => [
      status,
      { description, headers: headers(['X-Request-Id', ...names]), content },
    ]),
  );
}

/** The JSON Schema of a body; schemas with an id move to the components and are referenced. */
function jsonSchema(schema: z.ZodType, schemas: Json, io: 'input' | 'output' = 'output'): Json {
  const {
    $schema: _,
    $defs,
    ...whole
  } = z.toJSONSchema(schema, {
    io,
    override: ({ jsonSchema: part }) => {
      // Patterns that repeat a well-known format make the document hard to read.
      if (part.format === 'date-time') delete part.pattern;
    },
  }) as Json & { $defs?: Record<string, Json> };
  for (const [id, definition] of Object.entries($defs ?? {})) schemas[id] = relocated(definition);
  return relocated(whole);
}

function relocated(schema: Json): Json {
  const text = JSON.stringify(schema).replaceAll('"#/$defs/', '"#/components/schemas/');
  const { id: _, $schema: __, ...rest } = JSON.parse(text) as Json;
  return rest;
}
