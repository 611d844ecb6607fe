/** Renewals for administrators: the queue and the history, with all steps. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { renewalDetailView } from '../../../domain/certificates/certificate-views.ts';
import type { TimedContext } from '../../../domain/contexts.ts';
import { findRenewals, renewalWithId } from '../../../domain/renewals/renewals.ts';
import {
  renewalDetailSchema,
  renewalsOfCertificateQuery,
  renewalsQuery,
} from '../../openapi/certificate-admin-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, type Reply } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;
const replies = { 200: { description: 'a page', schema: z.array(renewalDetailSchema), headers: ['Link'] } };

type Filter = z.output<typeof renewalsQuery>;

export const renewalRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/renewals',
    id: 'listRenewals',
    summary: 'List renewals of all certificates or of one, newest first',
    access,
    query: renewalsQuery,
    replies,
    problems: ['certificate_not_found'],
    handle: ({ context: { vault }, ...call }) => page(vault, call, call.query.certificate),
  }),
  route({
    method: 'GET',
    path: '/api/v1/renewals/{id}',
    id: 'getRenewalDetail',
    summary: 'Return a renewal with its steps',
    access,
    query: noQuery,
    replies: { 200: { description: 'the renewal', schema: renewalDetailSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params: { id = '' } }) => {
      const row = /^[1-9]\d{0,14}$/.test(id) ? await renewalWithId(vault, Number(id)) : undefined;
      if (row === undefined) throw new Problem('not_found', { detail: 'Renewal not found.' });
      return json(200, renewalDetailView(row));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/renewals',
    id: 'listRenewalsOfCertificate',
    summary: 'List the renewals of a certificate with their steps, newest first',
    access,
    query: renewalsOfCertificateQuery,
    replies,
    problems: ['certificate_not_found'],
    handle: ({ context: { vault }, params, ...call }) => page(vault, call, params.name ?? ''),
  }),
];

function page(
  vault: TimedContext,
  call: Pick<Call<Filter>, 'baseUrl' | 'path' | 'query' | 'actor' | 'gone'>,
  name: string | undefined,
): Promise<Reply> {
  const { status, after, limit, certificate } = call.query;
  const rows = findRenewals(vault, { certificate: name, status, before: after, limit: limit + 1 });
  return pageReply(rows, call, renewalDetailView, (row) => row.id, { status, certificate });
}
