/** Deployments: clients report what they installed, and administrators see it. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { deploymentName, deploymentReport } from '../../../domain/deployments/deployment-inputs.ts';
import { reportDeployment } from '../../../domain/deployments/deployment-reports.ts';
import { type Deployment, deploymentView, findDeployments } from '../../../domain/deployments/deployments.ts';
import type { KnownLabels } from '../../../domain/labels/known-labels.ts';
import { labelsInFilter } from '../../../domain/labels/label-inputs.ts';
import { isWithinReach, reachOf } from '../../../domain/labels/reach.ts';
import { requireRecordAllowance } from '../../auth/record-limit.ts';
import {
  deploymentSchema,
  deploymentsOfCertificateQuery,
  deploymentsQuery,
} from '../../openapi/deployment-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { noContent, type Reply } from '../../request/reply.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;
const replies = { 200: { description: 'a page', schema: z.array(deploymentSchema), headers: ['Link'] } };

/** In bytes: every text at its maximum fits several times. */
const largestReport = 16_384;

export const deploymentRoutes: readonly Route[] = [
  route({
    method: 'PUT',
    path: '/api/v1/certificates/{name}/deployments/{id}',
    id: 'reportDeployment',
    summary:
      'Report what a client installed, with the results of reload and verification; only API keys report',
    // A job that fetches only private keys reports, too.
    access: { kind: 'scope', scope: 'certificates:read', orScope: 'private_keys:read' },
    query: noQuery,
    body: deploymentReport,
    bodyLimit: largestReport,
    replies: {
      204: {
        description: 'stored; recorded in the audit log if a result or the version changed',
        contentType: 'none',
      },
    },
    problems: ['certificate_not_found', 'deployment_exists', 'too_many_deployments'],
    handle: async (call) => {
      const { context, identity, actor, params, body } = call;
      if (identity?.kind !== 'api-key') {
        throw new Problem('forbidden', { detail: 'Only API keys report deployments.' });
      }
      await requireRecordAllowance(call, 'PUT');
      const target = { certificate: params.name ?? '', name: params.id ?? '' };
      if (!deploymentName.test(target.name)) {
        throw new Problem('invalid_request', {
          detail: 'The id of a deployment has up to 128 letters, digits, dots, dashes and underscores.',
        });
      }
      await reportDeployment(context.vault, actor, identity.id, target, body);
      return noContent;
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/deployments',
    id: 'listDeploymentsOfCertificate',
    summary: 'List where a certificate is installed, in the order of the first reports',
    access,
    query: deploymentsOfCertificateQuery,
    replies,
    problems: ['certificate_not_found'],
    handle: (call) => page(call, { certificate: call.params.name ?? '' }),
  }),
  route({
    method: 'GET',
    path: '/api/v1/deployments',
    id: 'listDeployments',
    summary: 'List where certificates are installed, in the order of the first reports',
    access,
    query: deploymentsQuery,
    replies,
    problems: [],
    handle: (call) => page(call, { label: call.query.label }),
  }),
];

type Page = z.output<typeof deploymentsOfCertificateQuery>;

function page(
  call: Pick<Call<Page>, 'baseUrl' | 'path' | 'query' | 'actor' | 'gone' | 'context' | 'identity'>,
  { certificate, label }: { readonly certificate?: string; readonly label?: string | undefined },
): Promise<Reply> {
  const { context, identity } = call;
  const { state, after, limit } = call.query;
  const reach = reachOf(identity);
  const labels = labelsInFilter(label);
  const rows = findDeployments(context.vault, { certificate, state, labels, reach, after, limit: limit + 1 });
  return pageReply(
    reach === undefined ? rows : withinReach(rows, context.labels, reach),
    call,
    deploymentView,
    (row) => row.id,
    { state, label },
  );
}

/** Without deployments of certificates that were found by labels which the vault did not write. */
async function* withinReach(
  portions: AsyncIterable<readonly Deployment[]>,
  labels: KnownLabels,
  reach: readonly string[],
): AsyncGenerator<readonly Deployment[]> {
  for await (const rows of portions) {
    const known = await Promise.all(rows.map(({ certificate }) => labels.of(certificate)));
    yield rows.filter((_, index) => isWithinReach({ reach }, known[index] ?? []));
  }
}
