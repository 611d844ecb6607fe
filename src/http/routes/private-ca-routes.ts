/** The CA certificates of private CAs for administrators: show, rotate, and issue under a company's root. */
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import { requestAuthority } from '../../domain/private-ca/ca-requests.ts';
import { viewCaCertificates } from '../../domain/private-ca/ca-views.ts';
import { privateCaNamed } from '../../domain/private-ca/local-ca.ts';
import { caRequestInput, importCaInput } from '../../domain/private-ca/private-ca-inputs.ts';
import type { PrivateCa } from '../../domain/private-ca/rotation.ts';
import { rotateCa } from '../../domain/renewals/ca-rotation.ts';
import { importCompanyAuthority } from '../../domain/renewals/company-import.ts';
import {
  caImportSchema,
  caRequestSchema,
  privateCaCertificatesSchema,
  rotationSchema,
} from '../openapi/private-ca-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Route, route } from '../request/route.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

export const privateCaRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/issuers/{name}/ca',
    id: 'getPrivateCa',
    summary: 'Return the roots and intermediates of a private CA, without their keys',
    access,
    query: noQuery,
    replies: { 200: { description: 'the CA certificates', schema: privateCaCertificatesSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params }) => {
      const { id } = await requireCa(vault, params.name);
      return json(200, await viewCaCertificates(vault, id));
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers/{name}/ca/rotate',
    id: 'rotatePrivateCa',
    summary:
      'Replace the root of a private CA: both roots certify each other, certificates are issued under the new one from now on, and those that renew automatically are renewed within a day',
    access,
    query: noQuery,
    replies: { 200: { description: 'rotated', schema: rotationSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      const ca = await requireCa(vault, params.name);
      const { formerUntil, queued, isTight } = await answeringOperators(() => rotateCa(vault, actor, ca));
      return json(200, {
        former_root_until: formatTimestamp(formerUntil),
        is_tight: isTight,
        renewals: queued,
        certificates: await viewCaCertificates(vault, ca.id),
      });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers/{name}/ca/csr',
    id: 'requestPrivateCa',
    summary:
      "Return the pending CSR for an intermediate of a private CA, which a company's CA signs, or generate a key for one",
    access,
    query: noQuery,
    body: caRequestInput,
    replies: { 200: { description: 'the CSR that is pending', schema: caRequestSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params, body }) => {
      const ca = await requireCa(vault, params.name);
      const { csr, createdAt, isNew } = await requestAuthority(vault, actor, ca, {
        replace: body.new === true,
      });
      return json(200, { csr, created_at: formatTimestamp(createdAt), is_new: isNew });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/issuers/{name}/ca/import',
    id: 'importPrivateCa',
    summary:
      "Issue under a company's root: import the certificate for the pending CSR with the company's intermediates and root",
    access,
    query: noQuery,
    body: importCaInput,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'imported', schema: caImportSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params, body: { chain, force = false } }) => {
      const ca = await requireCa(vault, params.name);
      const { root, notAfter, former, formerUntil, queued } = await answeringOperators(() =>
        importCompanyAuthority(vault, actor, ca, Buffer.from(chain), { force }),
      );
      return json(200, {
        root,
        issues_until: formatTimestamp(notAfter),
        former_root_until: former === undefined ? null : formatTimestamp(formerUntil),
        renewals: queued,
        certificates: await viewCaCertificates(vault, ca.id),
      });
    },
  }),
];

async function requireCa(vault: DatabaseContext, name = ''): Promise<PrivateCa> {
  const ca = await privateCaNamed(vault, name);
  if (ca === undefined) throw new Problem('not_found', { detail: 'No private CA has this name.' });
  return ca;
}
