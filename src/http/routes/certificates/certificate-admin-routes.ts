/** Certificates for administrators: create, change, revoke and delete them, and read their settings. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { type ApiKeyView, pageOfApiKeys } from '../../../domain/access/api-key-views.ts';
import { certificateSettings } from '../../../domain/certificates/certificate-settings.ts';
import { changeCertificate } from '../../../domain/certificates/certificate-update.ts';
import { currentCertificate } from '../../../domain/certificates/certificate-views.ts';
import { createCertificate, deleteCertificate } from '../../../domain/certificates/certificates.ts';
import { revokeVersion } from '../../../domain/certificates/revocation.ts';
import { ensureCertificate } from '../../../domain/desired-state/certificate-state.ts';
import { certName } from '../../../domain/input-strings.ts';
import { createCertificateInput, parseInput } from '../../../domain/inputs.ts';
import { labelsOf } from '../../../domain/labels/certificate-labelling.ts';
import { reachOf } from '../../../domain/labels/reach.ts';
import { inPortions } from '../../../domain/portions.ts';
import { certificateSummary, requireCertificate } from '../../../domain/versions/certificate-lookup.ts';
import {
  labelsReason,
  requireCertificateInReach,
  requireLabelOfReach,
} from '../../auth/certificate-reach.ts';
import { requireLabelling } from '../../auth/operation-reach.ts';
import { confinedToProfiles } from '../../auth/profile-limit.ts';
import { recordRefused } from '../../auth/recorded-refusal.ts';
import { apiKeySchema, byIdQuery } from '../../openapi/administration-schemas.ts';
import {
  certificateChangeSchema,
  certificateSettingsSchema,
  changeCertificateBody,
  deleteCertificateQuery,
  ensureCertificateBody,
  ensuredCertificateSchema,
  revokeBody,
  revokedSchema,
} from '../../openapi/certificate-admin-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { longBodyLimit } from '../../request/request-body.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';
import { answeringOperators } from '../operator-answers.ts';

const access = { kind: 'administrator' } as const;

export const certificateAdminRoutes: readonly Route[] = [
  route({
    method: 'POST',
    path: '/api/v1/certificates',
    id: 'createCertificate',
    summary: 'Create a certificate; the private CA issues it immediately, for an ACME CA a renewal is queued',
    access,
    query: noQuery,
    body: createCertificateInput,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'made', schema: certificateChangeSchema } },
    problems: ['certificate_exists'],
    handle: async (call) => {
      const { context, actor, body, baseUrl } = call;
      const { vault } = context;
      await requireLabelOfReach('POST', call, body.labels);
      const renewal = await confinedToProfiles('POST', call, (check) =>
        createCertificate(vault, actor, body, check),
      );
      const certificate = await currentCertificate(vault, body.name, baseUrl);
      return json(201, { certificate, renewal: renewal ?? null });
    },
  }),
  route({
    method: 'PUT',
    path: '/api/v1/certificates/{name}',
    id: 'ensureCertificate',
    summary:
      'Create a certificate, or change the settings that differ; settings that are not given get their defaults',
    access,
    query: noQuery,
    body: ensureCertificateBody,
    bodyLimit: longBodyLimit,
    replies: {
      200: { description: 'changed, or so already', schema: ensuredCertificateSchema },
      201: { description: 'created', schema: ensuredCertificateSchema },
    },
    problems: ['certificate_exists'],
    handle: async (call) => {
      const { context, actor, params, body, baseUrl } = call;
      const { vault } = context;
      const name = parseInput(certName, params.name);
      if (body.name !== undefined && body.name !== name) {
        const message = `differs from the name in the path, ${JSON.stringify(name)}`;
        throw new Problem('invalid_request', {
          detail: `The name in the body ${message}.`,
          errors: [{ path: 'name', message }],
        });
      }
      await requireEnsuring(call, name, body.labels);
      const { did, renewal = null } = await confinedToProfiles('PUT', call, (check) =>
        ensureCertificate(vault, actor, { ...body, name }, check),
      );
      const certificate = await currentCertificate(vault, name, baseUrl);
      return json(did === 'create' ? 201 : 200, { certificate, renewal, changed: did !== 'nothing' });
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/certificates/{name}',
    id: 'changeCertificate',
    summary: 'Change settings of a certificate; changed domains or key type renew it immediately',
    access,
    query: noQuery,
    body: changeCertificateBody,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'changed', schema: certificateChangeSchema } },
    problems: ['certificate_not_found', 'not_renewable'],
    handle: async (call) => {
      const { context, actor, params, body, baseUrl } = call;
      const { vault } = context;
      if (body.labels !== undefined) await recordRefused('PATCH', call, labelsReason, requireLabelling);
      const renewal = await confinedToProfiles('PATCH', call, (check) =>
        changeCertificate(vault, actor, params.name ?? '', body, check),
      );
      const certificate = await currentCertificate(vault, params.name ?? '', baseUrl);
      return json(200, { certificate, renewal: renewal ?? null });
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/certificates/{name}',
    id: 'deleteCertificate',
    summary: 'Delete a certificate; it can be restored until it is purged, after 30 days by default',
    access,
    query: deleteCertificateQuery,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['certificate_not_found', 'certificate_in_use'],
    approval: async (call) => `Delete the certificate ${(await known(call)).name}`,
    handle: async ({ context: { vault }, actor, params, query }) => {
      await deleteCertificate(vault, actor, params.name ?? '', { force: query.force === 'true' });
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/certificates/{name}/revoke',
    id: 'revokeCertificate',
    summary: 'Revoke a version at its CA; revoking the current version also renews the certificate',
    access,
    query: noQuery,
    body: revokeBody,
    replies: { 200: { description: 'revoked', schema: revokedSchema } },
    problems: ['certificate_not_found', 'version_not_found', 'no_current_version', 'not_renewable'],
    approval: async (call) => {
      const { name, current_version } = await known(call);
      const version = call.body.version ?? current_version;
      if (version === null) throw new Problem('no_current_version');
      return `Revoke version ${version} of the certificate ${name}`;
    },
    handle: async (call) => {
      const { context, actor, params, body, gone } = call;
      const what = { version: body.version, reason: body.reason };
      const { version, renewal } = await confinedToProfiles('POST', call, (check) =>
        answeringOperators(() => revokeVersion(context.vault, actor, params.name ?? '', what, gone(), check)),
      );
      return json(200, { version, renewal: renewal ?? null });
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/settings',
    id: 'getCertificateSettings',
    summary: 'Return the settings of a certificate',
    access,
    query: noQuery,
    replies: { 200: { description: 'the settings', schema: certificateSettingsSchema } },
    problems: ['certificate_not_found'],
    handle: async ({ context: { vault }, params }) =>
      json(200, await certificateSettings(vault, params.name ?? '')),
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/api-keys',
    id: 'listApiKeysOfCertificate',
    summary: 'List API keys that may access a certificate, including revoked ones',
    access,
    query: byIdQuery,
    replies: { 200: { description: 'a page', schema: z.array(apiKeySchema), headers: ['Link'] } },
    problems: ['certificate_not_found'],
    handle: async (call) => {
      const { context, params, query, identity } = call;
      const { vault } = context;
      const name = params.name ?? '';
      await requireCertificateInReach('GET', call, name);
      const reach = reachOf(identity);
      return pageReply(
        inPortions<ApiKeyView>(vault, query.limit + 1, (limit, last) =>
          pageOfApiKeys(vault, { after: last?.id ?? query.after, limit, reach }, name),
        ),
        call,
        (key) => key,
        ({ id }) => id,
      );
    },
  }),
];

/** Throws `forbidden` if `ensureCertificate` would change labels for someone who may not, or reach too far. */
async function requireEnsuring(
  call: Omit<Call, 'query' | 'body'>,
  name: string,
  labels: readonly string[] | undefined,
): Promise<void> {
  const existing = await certificateSummary(call.context.vault, name);
  if (existing === undefined) return requireLabelOfReach('PUT', call, labels);
  await requireCertificateInReach('PUT', call, name);
  const isSame = labels === undefined || labels.join() === labelsOf(existing).join();
  if (!isSame) await recordRefused('PUT', call, labelsReason, requireLabelling);
}

/** Throws `certificate_not_found`. */
function known({
  context: { vault },
  params,
}: Pick<Call, 'context' | 'params'>): ReturnType<typeof requireCertificate> {
  return requireCertificate(vault.db.reader, params.name ?? '');
}
