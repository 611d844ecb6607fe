/** Public routes: health, readiness, the API description and the root certificate of the private CA. */
import { z } from 'zod';
import { readiness } from '../../domain/doctor/readiness.ts';
import { rootPem } from '../../domain/private-ca/local-ca.ts';
import { healthSchema, readinessSchema } from '../openapi/schemas.ts';
import { json, type WholeReply } from '../request/reply.ts';
import { type Route, route } from '../request/route.ts';
import { rootReply } from './crl-routes.ts';

const access = { kind: 'public' } as const;

/**
 * `document` returns the description of the API, which is generated once per version from the table that contains these
 * routes.
 */
export function publicRoutes(document: (version: string) => unknown): readonly Route[] {
  let described: { readonly version: string; readonly reply: WholeReply } | undefined;
  const description = (version: string) => {
    if (described?.version !== version) {
      const { body, ...head } = json(200, document(version));
      // Bytes are sent without a copy per connection, unlike text.
      described = { version, reply: { ...head, body: Buffer.from(body) } };
    }
    return described.reply;
  };
  return [
    route({
      method: 'GET',
      path: '/api/v1/health',
      id: 'getHealth',
      summary: 'Report that the server is running',
      access,
      replies: { 200: { description: 'alive', schema: healthSchema } },
      problems: [],
      handle: async ({ context }) => json(200, { status: 'ok', version: context.version }),
    }),
    route({
      method: 'GET',
      path: '/api/v1/ready',
      id: 'getReady',
      summary: 'Report whether the vault is ready',
      access,
      replies: {
        200: { description: 'ready', schema: readinessSchema },
        503: { description: 'not ready; the checks name what failed', schema: readinessSchema },
      },
      problems: [],
      handle: async ({ context }) => {
        const result = await readiness(context.vault);
        return json(result.status === 'ready' ? 200 : 503, result);
      },
    }),
    route({
      method: 'GET',
      path: '/api/v1/openapi.json',
      id: 'getOpenApi',
      summary: 'Return this description of the API',
      access,
      replies: { 200: { description: 'OpenAPI 3.1', schema: z.looseObject({ openapi: z.string() }) } },
      problems: [],
      handle: async ({ context }) => description(context.version),
    }),
    route({
      method: 'GET',
      path: '/client/ca.crt',
      id: 'getPrivateCaRoot',
      summary: 'Download the root certificates of the built-in private CA; two of them after a rotation',
      access,
      replies: {
        200: { description: 'PEM', contentType: 'application/x-pem-file', headers: ['Content-Disposition'] },
      },
      problems: [],
      handle: async ({ context }) => rootReply(await rootPem(context.vault)),
    }),
  ];
}
