/** Deleted certificates for administrators: list, restore and purge them. */
import { z } from 'zod';
import { purgeCertificate } from '../../../domain/certificates/certificate-purging.ts';
import { currentCertificate } from '../../../domain/certificates/certificate-views.ts';
import {
  type DeletedCertificateView,
  listDeleted,
} from '../../../domain/certificates/deleted-certificate-views.ts';
import { requireDeleted, undeleteCertificate } from '../../../domain/certificates/deleted-certificates.ts';
import { inPortions } from '../../../domain/portions.ts';
import { confinedToProfiles } from '../../auth/profile-limit.ts';
import { byIdQuery } from '../../openapi/administration-schemas.ts';
import {
  deletedCertificateSchema,
  deletedIdParameter,
  restoreBody,
  restoredSchema,
} from '../../openapi/deleted-certificate-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;

export const deletedCertificateRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/deleted-certificates',
    id: 'listDeletedCertificates',
    summary: 'List deleted certificates that can be restored, in the order of deletion',
    access,
    query: byIdQuery,
    replies: {
      200: { description: 'a page', schema: z.array(deletedCertificateSchema), headers: ['Link'] },
    },
    problems: [],
    handle: ({ context: { vault, keepDeleted }, ...call }) =>
      pageReply(
        inPortions<DeletedCertificateView>(vault, call.query.limit + 1, (limit, last) =>
          listDeleted(vault, keepDeleted, { after: last?.id ?? call.query.after, limit }),
        ),
        call,
        (view) => view,
        ({ id }) => id,
      ),
  }),
  route({
    method: 'POST',
    path: '/api/v1/deleted-certificates/{id}/restore',
    id: 'restoreDeletedCertificate',
    summary: 'Restore a deleted certificate with its versions and keys',
    access,
    query: noQuery,
    body: restoreBody,
    replies: { 200: { description: 'restored', schema: restoredSchema } },
    problems: ['certificate_not_found', 'certificate_exists'],
    handle: async (call) => {
      const { context, actor, params, body, baseUrl } = call;
      const { vault } = context;
      const which = { id: deletedIdParameter(params.id) };
      const restored = await confinedToProfiles('POST', call, (check) =>
        undeleteCertificate(vault, actor, which, body.name, check),
      );
      const { name, lostIssuer, apiKeys, labels } = restored;
      const certificate = await currentCertificate(vault, name, baseUrl);
      return json(200, { certificate, lost_issuer: lostIssuer ?? null, api_keys: apiKeys, labels });
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/deleted-certificates/{id}',
    id: 'purgeDeletedCertificate',
    summary: 'Destroy a deleted certificate with its versions and keys; this cannot be undone',
    access,
    query: noQuery,
    approval: async ({ context: { vault }, params }) => {
      const { name } = await requireDeleted(vault.db.reader, { id: deletedIdParameter(params.id) });
      return `Destroy the deleted certificate ${name} with its private keys`;
    },
    replies: { 204: { description: 'purged; recorded in the audit log', contentType: 'none' } },
    problems: ['certificate_not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      await purgeCertificate(vault, actor, { id: deletedIdParameter(params.id) });
      return noContent;
    },
  }),
];
