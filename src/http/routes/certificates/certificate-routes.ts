/** Certificates, their versions and their renewals: what API keys with a scope can read and trigger. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { maxRequestSize, requestText } from '../../../crypto/x509/signing-request.ts';
import type { Identity } from '../../../domain/access/identity.ts';
import {
  type CertificateCursor,
  type CertificateOnPage,
  type certificateOrders,
  findCertificates,
} from '../../../domain/certificates/certificate-search.ts';
import {
  certificateText,
  certificateView,
  renewalView,
  versionView,
} from '../../../domain/certificates/certificate-views.ts';
import { signRequest } from '../../../domain/certificates/request-signing.ts';
import { csr } from '../../../domain/input-strings.ts';
import { labelsInFilter } from '../../../domain/labels/label-inputs.ts';
import { reachOf } from '../../../domain/labels/reach.ts';
import { inPortions } from '../../../domain/portions.ts';
import { type Renewal, requestRenewal, requireRenewal } from '../../../domain/renewals/renewals.ts';
import type { CertificateSummary } from '../../../domain/versions/certificate-lookup.ts';
import { pageVersions, type VersionOnPage } from '../../../domain/versions/versions.ts';
import { confinedToProfiles } from '../../auth/profile-limit.ts';
import { requireRecordAllowance, withRenewalAllowance } from '../../auth/record-limit.ts';
import { certificatesQuery } from '../../openapi/certificate-admin-schemas.ts';
import {
  certificateSchema,
  noQuery,
  queuedRenewalSchema,
  renewalSchema,
  versionSchema,
  versionsQuery,
} from '../../openapi/schemas.ts';
import { json, jsonBody, type Reply } from '../../request/reply.ts';
import { type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const read = { kind: 'scope', scope: 'certificates:read' } as const;
const renew = { kind: 'scope', scope: 'renewals:trigger' } as const;
const sign = { kind: 'scope', scope: 'certificates:sign' } as const;

const signBody = z.strictObject({ csr });

export const certificateRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/certificates',
    id: 'listCertificates',
    summary: 'List certificates: those the API key may access, or all for an administrator',
    access: read,
    query: certificatesQuery,
    replies: { 200: { description: 'a page', schema: z.array(certificateSchema), headers: ['Link'] } },
    problems: [],
    handle: ({ context: { vault }, identity, query, ...call }) => {
      const { search, status, issuer, sort, label } = query;
      const now = vault.world.now();
      const rows = findCertificates(vault, {
        now,
        after: cursorIn(query),
        limit: query.limit + 1,
        ...accessOf(identity),
        labels: labelsInFilter(label),
        search: search === '' ? undefined : search,
        status,
        issuer: issuer === '' ? null : issuer,
        sort,
      });
      return pageReply(
        rows,
        { ...call, query },
        (row) => certificateView(row, now, call.baseUrl),
        (row) => cursorOf(query, row),
        { search, status, issuer, label, sort: sort === 'name' ? undefined : sort },
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}',
    id: 'getCertificate',
    summary: 'Return the metadata of a certificate',
    access: read,
    query: noQuery,
    replies: { 200: { description: 'the certificate', schema: certificateSchema } },
    problems: ['certificate_not_found'],
    handle: ({ context: { vault, downloads }, params, baseUrl }) => {
      const summary = downloads.summary(params.name ?? '');
      const show = (row: CertificateSummary) =>
        jsonBody(200, certificateText(row, vault.world.now(), baseUrl));
      return summary instanceof Promise ? summary.then(show) : show(summary);
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/versions',
    id: 'listVersions',
    summary: 'List the versions of a certificate, newest first',
    access: read,
    query: versionsQuery,
    replies: { 200: { description: 'a page', schema: z.array(versionSchema), headers: ['Link'] } },
    problems: ['certificate_not_found'],
    handle: async ({ context: { vault, downloads }, params, ...call }) => {
      const { id, current_version } = await downloads.summary(params.name ?? '');
      const { after, limit } = call.query;
      return pageReply(
        inPortions<VersionOnPage>(vault, limit + 1, (count, last) =>
          pageVersions(vault, id, { before: last?.version ?? after, limit: count }),
        ),
        call,
        (row) => versionView(row, current_version),
        ({ version }) => version,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/certificates/{name}/renew',
    id: 'renewCertificate',
    summary: 'Queue a renewal, or return the one that is already open',
    access: renew,
    query: noQuery,
    replies: { 202: { description: 'queued', schema: queuedRenewalSchema, headers: ['Location'] } },
    problems: ['certificate_not_found', 'not_renewable'],
    handle: async (call) => {
      await requireRecordAllowance(call, 'POST');
      const { context, actor, params } = call;
      return queued(
        await withRenewalAllowance(call, (count) =>
          confinedToProfiles(
            'POST',
            call,
            (check) => requestRenewal(context.vault, actor, params.name ?? '', { check, count }),
            'renewals:trigger',
          ),
        ),
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/certificates/{name}/sign',
    id: 'signRequest',
    summary:
      'Issue the certificate for a CSR: queue a renewal with it, or return the one that is already open',
    access: sign,
    query: noQuery,
    body: signBody,
    bodyTypes: {
      'application/x-pem-file': (bytes) => ({ csr: requestText(bytes) }),
      'application/pkcs10': (bytes) => ({ csr: requestText(bytes) }),
    },
    bodyLimit: maxRequestSize,
    replies: { 202: { description: 'queued', schema: queuedRenewalSchema, headers: ['Location'] } },
    problems: ['certificate_not_found', 'not_renewable', 'certificate_in_use'],
    handle: async (call) => {
      await requireRecordAllowance(call, 'POST');
      const { context, actor, params, body } = call;
      return queued(
        await withRenewalAllowance(call, (count) =>
          confinedToProfiles(
            'POST',
            call,
            (check) => signRequest(context.vault, actor, params.name ?? '', body.csr, { check, count }),
            'certificates:sign',
          ),
        ),
      );
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/certificates/{name}/renewals/{id}',
    id: 'getRenewal',
    summary: 'Return the status of a renewal',
    access: { ...renew, orScope: 'certificates:sign' },
    query: noQuery,
    replies: { 200: { description: 'the renewal', schema: renewalSchema } },
    problems: ['certificate_not_found', 'not_found'],
    handle: async ({ context: { vault }, params }) => {
      const id = params.id ?? '';
      if (!/^[1-9]\d{0,14}$/.test(id)) throw new Problem('not_found');
      return json(200, renewalView(await requireRenewal(vault, params.name ?? '', Number(id))));
    },
  }),
];

/** Which certificates the caller may access. */
function accessOf(identity: Identity | undefined) {
  const reach = reachOf(identity);
  if (identity?.kind !== 'api-key' || identity.certificates === 'any') return { reach };
  return { allowlistOf: identity.id, allowedLabels: identity.certificateLabels, reach };
}

/** 202 with the renewal, and where its status is. */
function queued(row: Renewal): Reply {
  const { id, certificate, status, requested_at } = renewalView(row);
  const location = `/api/v1/certificates/${encodeURIComponent(certificate)}/renewals/${id}`;
  return json(202, { id, certificate, status, requested_at }, { Location: location });
}

type Sorted = { readonly sort: (typeof certificateOrders)[number]; readonly after?: string | undefined };

/** The value of `?after=` that continues after the row: its name, preceded by the sort value. */
function cursorOf({ sort }: Sorted, { name, sort_key }: CertificateOnPage): string {
  return sort === 'name' ? name : `${sort_key}:${name}`;
}

/** Parses `?after=`. Throws `invalid_request` if it does not match the requested sort order. */
function cursorIn({ sort, after }: Sorted): CertificateCursor | undefined {
  if (after === undefined) return undefined;
  if (sort === 'name') return { name: after };
  const [, key, name] = /^(\d{1,16}):([^:]*)$/.exec(after) ?? [];
  if (key !== undefined && name !== undefined) return { key: Number(key), name };
  const message = 'must be the cursor from a Link header';
  throw new Problem('invalid_request', {
    detail: `after: ${message}.`,
    errors: [{ path: 'after', message }],
  });
}
