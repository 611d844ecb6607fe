/** Deployments: clients report what they installed, and administrators see it and delete what is gone. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { includesRole } from '../../../base/role.ts';
import { type Identity, requireRole, requireScope } from '../../../domain/access/identity.ts';
import { deploymentName, deploymentReport } from '../../../domain/deployments/deployment-inputs.ts';
import { type DeploymentTarget, deleteDeployment } from '../../../domain/deployments/deployment-removal.ts';
import { reportDeployment } from '../../../domain/deployments/deployment-reports.ts';
import {
  type Deployment,
  type DeploymentSearch,
  deploymentView,
  findDeployments,
} from '../../../domain/deployments/deployments.ts';
import { rolloutOf } from '../../../domain/deployments/rollout.ts';
import type { KnownLabels } from '../../../domain/labels/known-labels.ts';
import { labelsInFilter } from '../../../domain/labels/label-inputs.ts';
import { isWithinReach, reachOf, requireReach } from '../../../domain/labels/reach.ts';
import { requireRecordAllowance } from '../../auth/record-limit.ts';
import { recordRefused } from '../../auth/recorded-refusal.ts';
import {
  deploymentSchema,
  deploymentsOfCertificateQuery,
  deploymentsQuery,
  rolloutSchema,
} from '../../openapi/deployment-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent, type Reply } from '../../request/reply.ts';
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
      const target = targetIn(params);
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
    method: 'DELETE',
    path: '/api/v1/certificates/{name}/deployments/{id}',
    id: 'deleteDeployment',
    summary:
      'Delete a deployment that is gone: by the API key that reports it, or with the role operator or admin',
    // The role of a person, or the scope and the deployment of a key.
    access: { kind: 'authenticated' },
    query: noQuery,
    replies: { 204: { description: 'deleted', contentType: 'none' } },
    problems: ['forbidden', 'certificate_not_found', 'deployment_not_found'],
    handle: async (call) => {
      const { context, actor, params } = call;
      await requireRecordAllowance(call, 'DELETE');
      const target = targetIn(params);
      const labels = await context.labels.of(target.certificate);
      await recordRefused('DELETE', call, 'deployment', async (identity) => {
        const apiKeyId = deletableBy(identity, target.certificate, labels);
        await deleteDeployment(context.vault, actor, target, apiKeyId);
      });
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
    path: '/api/v1/certificates/{name}/rollout',
    id: 'getRollout',
    summary:
      'Follow the current version of a certificate: how many deployments fetched it, and on how many it is live',
    access,
    query: noQuery,
    replies: { 200: { description: 'the rollout', schema: rolloutSchema } },
    problems: ['certificate_not_found'],
    handle: async ({ context, params }) => json(200, await rolloutOf(context.vault, params.name ?? '')),
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
    handle: (call) => {
      const { label, api_key: apiKeyId, host } = call.query;
      return page(call, { label, apiKeyId, host });
    },
  }),
];

function targetIn({ name = '', id = '' }: Call['params']): DeploymentTarget {
  return { certificate: name, name: id };
}

/**
 * The API key whose deployments the caller may delete; undefined for those of all keys. Throws `forbidden` if the
 * caller may not read the certificate, whether it exists or not.
 */
function deletableBy(identity: Identity, certificate: string, labels: readonly string[]): number | undefined {
  if (
    identity.kind === 'administrator' ||
    (identity.role !== null && includesRole(identity.role, 'operator'))
  ) {
    requireRole(identity, 'operator');
    requireReach(identity, labels);
    return undefined;
  }
  const scope = identity.scopes.has('certificates:read') ? 'certificates:read' : 'private_keys:read';
  requireScope(identity, scope, certificate, labels);
  return identity.id;
}

type Page = z.output<typeof deploymentsOfCertificateQuery>;

function page(
  call: Pick<Call<Page>, 'baseUrl' | 'path' | 'query' | 'actor' | 'gone' | 'context' | 'identity'>,
  {
    label,
    ...search
  }: Pick<DeploymentSearch, 'certificate' | 'apiKeyId' | 'host'> & {
    readonly label?: string | undefined;
  },
): Promise<Reply> {
  const { context, identity } = call;
  const { state, after, limit } = call.query;
  const reach = reachOf(identity);
  const labels = labelsInFilter(label);
  const rows = findDeployments(context.vault, { ...search, state, labels, reach, after, limit: limit + 1 });
  return pageReply(
    reach === undefined ? rows : withinReach(rows, context.labels, reach),
    call,
    deploymentView,
    (row) => row.id,
    { state, label, api_key: search.apiKeyId?.toString(), host: search.host },
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
