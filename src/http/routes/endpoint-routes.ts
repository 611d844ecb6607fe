/** Endpoints: TLS servers whose certificate the vault checks. */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import {
  addEndpoint,
  changeEndpoint,
  type RequireFit,
  removeEndpoint,
} from '../../domain/endpoints/endpoint-changes.ts';
import { createEndpointInput, updateEndpointInput } from '../../domain/endpoints/endpoint-inputs.ts';
import {
  type Endpoint,
  endpointView,
  findEndpoints,
  requireEndpoint,
  withState,
} from '../../domain/endpoints/endpoints.ts';
import { checkNow } from '../../domain/endpoints/manual-checks.ts';
import type { KnownLabels } from '../../domain/labels/known-labels.ts';
import { labelsInFilter } from '../../domain/labels/label-inputs.ts';
import { isWithinReach, reachOf, requireReach } from '../../domain/labels/reach.ts';
import { recordRefused } from '../auth/recorded-refusal.ts';
import { endpointSchema, endpointsQuery } from '../openapi/endpoint-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { type Call, type Method, type Route, route } from '../request/route.ts';
import { pageReply } from './list-reply.ts';

const access = { kind: 'administrator' } as const;

/** In bytes: a bundle of all public roots fits. */
const largestEndpoint = 524_288;

export const endpointRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/endpoints',
    id: 'listEndpoints',
    summary: 'List endpoints with what they serve, in the order of their creation',
    access,
    query: endpointsQuery,
    replies: { 200: { description: 'a page', schema: z.array(endpointSchema), headers: ['Link'] } },
    problems: ['certificate_not_found'],
    handle: async (call) => {
      const { context, identity, query } = call;
      const { certificate, state, label, after, limit } = query;
      if (certificate !== undefined) await fitting('GET', call, [certificate]);
      const reach = reachOf(identity);
      const search = { certificate, state, labels: labelsInFilter(label), reach, after, limit: limit + 1 };
      const rows = findEndpoints(context.vault, search);
      const now = context.vault.world.now();
      return pageReply(
        reach === undefined ? rows : withinReach(rows, context.labels, reach),
        call,
        (row) => endpointView(row, now),
        ({ id }) => id,
        { certificate, state, label },
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/endpoints',
    id: 'addEndpoint',
    summary: 'Add an endpoint, which is checked within seconds',
    access,
    query: noQuery,
    body: createEndpointInput,
    bodyLimit: largestEndpoint,
    replies: { 201: { description: 'added', schema: endpointSchema } },
    problems: ['certificate_not_found', 'endpoint_exists', 'too_many_endpoints'],
    handle: async (call) => {
      const { context, actor, body } = call;
      await fitting('POST', call, [body.certificate ?? null]);
      const id = await addEndpoint(context.vault, actor, body);
      return json(201, await shown(call, id));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/endpoints/{id}',
    id: 'getEndpoint',
    summary: 'Return an endpoint with what it serves',
    access,
    query: noQuery,
    replies: { 200: { description: 'the endpoint', schema: endpointSchema } },
    problems: ['endpoint_not_found'],
    handle: async (call) => {
      const { id } = await endpointIn('GET', call);
      return json(200, await shown(call, id));
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/endpoints/{id}',
    id: 'changeEndpoint',
    summary:
      'Change an endpoint, which is checked again within seconds; what the body does not name stays the same',
    access,
    query: noQuery,
    body: updateEndpointInput,
    bodyLimit: largestEndpoint,
    replies: { 200: { description: 'changed', schema: endpointSchema } },
    problems: ['endpoint_not_found', 'certificate_not_found', 'endpoint_exists'],
    handle: async (call) => {
      const { context, actor, body } = call;
      const { certificate } = body;
      const { id, fit } = await endpointIn('PATCH', call, certificate === undefined ? [] : [certificate]);
      await changeEndpoint(context.vault, actor, id, body, fit);
      return json(200, await shown(call, id));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/endpoints/{id}',
    id: 'removeEndpoint',
    summary: 'Remove an endpoint',
    access,
    query: noQuery,
    replies: { 204: { description: 'removed', contentType: 'none' } },
    problems: ['endpoint_not_found'],
    handle: async (call) => {
      const { id, fit } = await endpointIn('DELETE', call);
      await removeEndpoint(call.context.vault, call.actor, id, fit);
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/endpoints/{id}/check',
    id: 'checkEndpoint',
    summary: 'Check an endpoint now, which takes up to ten seconds',
    access,
    query: noQuery,
    replies: { 200: { description: 'the endpoint with what it serves', schema: endpointSchema } },
    problems: ['endpoint_not_found', 'rate_limited'],
    handle: async (call) => {
      const { vault } = call.context;
      const { id } = await endpointIn('POST', call);
      return json(200, endpointView(await checkNow(vault, id, call.gone()), vault.world.now()));
    },
  }),
];

type Place = Omit<Call, 'query' | 'body'>;

/** The endpoint of the path, if it and all of the other certificates are within the caller's reach. */
async function endpointIn(
  method: Method,
  call: Place,
  others: readonly (string | null)[] = [],
): Promise<{ readonly id: number; readonly fit: RequireFit }> {
  const { certificate, id } = await requireEndpoint(call.context.vault.db.reader, Number(call.params.id));
  return { id, fit: await fitting(method, call, [certificate, ...others]) };
}

/**
 * Requires that these certificates are within the caller's reach; null stands for none, which only a caller without a
 * reach may have. Returns what refuses all others, because an endpoint may change until it is written.
 */
async function fitting(
  method: Method,
  call: Place,
  certificates: readonly (string | null)[],
): Promise<RequireFit> {
  await recordRefused(method, call, 'outside its reach', async (identity) => {
    for (const name of certificates) {
      requireReach(identity, name === null ? [] : await call.context.labels.of(name));
    }
  });
  return (name) => {
    if (!certificates.includes(name)) throw new Problem('forbidden');
  };
}

async function shown({ context: { vault } }: Pick<Call, 'context'>, id: number) {
  const now = vault.world.now();
  return endpointView(withState(await requireEndpoint(vault.db.reader, id), now), now);
}

/** Without endpoints of certificates that were found by labels which the vault did not write. */
async function* withinReach(
  portions: AsyncIterable<readonly Endpoint[]>,
  labels: KnownLabels,
  reach: readonly string[],
): AsyncGenerator<readonly Endpoint[]> {
  for await (const rows of portions) {
    const known = await Promise.all(
      rows.map(({ certificate }) => (certificate === null ? [] : labels.of(certificate))),
    );
    yield rows.filter((_, index) => isWithinReach({ reach }, known[index] ?? []));
  }
}
