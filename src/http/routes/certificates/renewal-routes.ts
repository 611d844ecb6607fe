/** Renewals for administrators: the queue and the history, with all steps. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { renewalDetailView } from '../../../domain/certificates/certificate-views.ts';
import type { KnownLabels } from '../../../domain/labels/known-labels.ts';
import { type Confined, isWithinReach, reachOf } from '../../../domain/labels/reach.ts';
import { findRenewals, type NamedRenewal, renewalWithId } from '../../../domain/renewals/renewals.ts';
import { requireCertificateInReach } from '../../auth/certificate-reach.ts';
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
    handle: async (call) => {
      const { certificate } = call.query;
      if (certificate !== undefined) await requireCertificateInReach('GET', call, certificate);
      return page(call, certificate);
    },
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
    handle: async (call) => {
      const { context, params } = call;
      const { id = '' } = params;
      const row = /^[1-9]\d{0,14}$/.test(id) ? await renewalWithId(context.vault, Number(id)) : undefined;
      await requireCertificateInReach('GET', call, row?.certificate ?? '');
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
    handle: (call) => page(call, call.params.name ?? ''),
  }),
];

function page(
  call: Pick<Call<Filter>, 'baseUrl' | 'path' | 'query' | 'actor' | 'gone' | 'context' | 'identity'>,
  name: string | undefined,
): Promise<Reply> {
  const { context, identity } = call;
  const { status, after, limit, certificate } = call.query;
  const reach = reachOf(identity);
  const search = { certificate: name, status, before: after, limit: limit + 1, reach };
  const rows = findRenewals(context.vault, search);
  return pageReply(
    reach === undefined ? rows : withinReach(rows, context.labels, { reach }),
    call,
    renewalDetailView,
    (row) => row.id,
    { status, certificate },
  );
}

/** Without renewals of certificates that were found by labels which the vault did not write. */
async function* withinReach(
  portions: AsyncIterable<readonly NamedRenewal[]>,
  labels: KnownLabels,
  who: Confined,
): AsyncGenerator<readonly NamedRenewal[]> {
  for await (const rows of portions) {
    const known = await Promise.all(rows.map(({ certificate }) => labels.of(certificate)));
    yield rows.filter((_, index) => isWithinReach(who, known[index] ?? []));
  }
}
