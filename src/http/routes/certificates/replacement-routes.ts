/** Emergency replacements: administrators preview, create, follow and cancel them. */
import { z } from 'zod';
import type { KnownLabels } from '../../../domain/labels/known-labels.ts';
import { isWithinReach, reachOf, requireReach } from '../../../domain/labels/reach.ts';
import { inPortions } from '../../../domain/portions.ts';
import {
  type ReplacementSelection,
  replacementInput,
  replacementRequest,
} from '../../../domain/replacements/replacement-inputs.ts';
import { previewReplacement } from '../../../domain/replacements/replacement-preview.ts';
import type { Permits } from '../../../domain/replacements/replacement-selection.ts';
import {
  pageOfReplaced,
  pageOfReplacements,
  type ReplacedCertificate,
  type ReplacementView,
  replacedView,
  viewReplacement,
} from '../../../domain/replacements/replacement-views.ts';
import { cancelReplacement, createReplacement } from '../../../domain/replacements/replacements.ts';
import { requireCertificateInReach } from '../../auth/certificate-reach.ts';
import { confinedToProfiles } from '../../auth/profile-limit.ts';
import { recordRefused } from '../../auth/recorded-refusal.ts';
import {
  previewSchema,
  replacedCertificateSchema,
  replacedCertificatesQuery,
  replacementSchema,
  replacementsQuery,
} from '../../openapi/replacement-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json } from '../../request/reply.ts';
import { type Call, type Method, type Route, route } from '../../request/route.ts';
import { pageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;

/** In bytes: names and labels. */
const largestRequest = 65_536;

export const replacementRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/replacements',
    id: 'listReplacements',
    summary: 'List replacements, newest first; callers with a reach get only their own',
    access,
    query: replacementsQuery,
    replies: { 200: { description: 'a page', schema: z.array(replacementSchema), headers: ['Link'] } },
    problems: [],
    handle: (call) => {
      const { context, identity, actor, query } = call;
      const createdBy = reachOf(identity) === undefined ? undefined : actor.name;
      return pageReply(
        inPortions<ReplacementView>(context.vault, query.limit + 1, (limit, last) =>
          pageOfReplacements(context.vault, { before: last?.id ?? query.after, limit, createdBy }),
        ),
        call,
        (view) => view,
        ({ id }) => id,
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/replacements',
    id: 'createReplacement',
    summary:
      'Reissue certificates, and revoke each old version once the new one is live where it is known to be installed, or at the deadline',
    access,
    query: noQuery,
    body: replacementInput,
    bodyLimit: largestRequest,
    replies: { 201: { description: 'created', schema: replacementSchema, headers: ['Location'] } },
    problems: ['certificate_not_found', 'no_current_version', 'nothing_to_replace'],
    approval: async (call) => {
      const { selection, reason } = replacementRequest(call.body);
      await permitted('POST', call, selection);
      return `Replace and revoke ${described(selection)} (${reason})`;
    },
    handle: async (call) => {
      const { vault } = call.context;
      const request = replacementRequest(call.body);
      const permits = await permitted('POST', call, request.selection);
      const id = await confinedToProfiles('POST', call, (check) =>
        createReplacement(vault, call.actor, request, { permits, check }),
      );
      const location = `${call.baseUrl}/api/v1/replacements/${id}`;
      return json(201, await viewReplacement(vault, id), { Location: location });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/replacements/preview',
    id: 'previewReplacement',
    summary: 'Return what a replacement would do and who is affected; changes nothing',
    access,
    query: noQuery,
    body: replacementInput,
    bodyLimit: largestRequest,
    replies: { 200: { description: 'what is affected', schema: previewSchema } },
    problems: ['certificate_not_found', 'no_current_version'],
    handle: async (call) => {
      const request = replacementRequest(call.body);
      const permits = await permitted('POST', call, request.selection);
      const reach = reachOf(call.identity);
      return json(200, await previewReplacement(call.context.vault, request, { permits, reach }));
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/replacements/{id}',
    id: 'getReplacement',
    summary: 'Return a replacement with its progress',
    access,
    query: noQuery,
    replies: { 200: { description: 'the replacement', schema: replacementSchema } },
    problems: ['replacement_not_found'],
    handle: async (call) => json(200, await replacementIn('GET', call)),
  }),
  route({
    method: 'GET',
    path: '/api/v1/replacements/{id}/certificates',
    id: 'listReplacedCertificates',
    summary: 'List the certificates of a replacement with their progress',
    access,
    query: replacedCertificatesQuery,
    replies: {
      200: { description: 'a page', schema: z.array(replacedCertificateSchema), headers: ['Link'] },
    },
    problems: ['replacement_not_found'],
    handle: async (call) => {
      const { context, identity, query } = call;
      const { id } = await replacementIn('GET', call);
      const reach = reachOf(identity);
      const { state, after } = query;
      const rows = inPortions<ReplacedCertificate>(context.vault, query.limit + 1, (limit, last) =>
        pageOfReplaced(context.vault, id, { after: last?.id ?? after, limit, state, reach }),
      );
      return pageReply(
        reach === undefined ? rows : withinReach(rows, context.labels, reach),
        call,
        replacedView,
        (row) => row.id,
        { state },
      );
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/replacements/{id}/cancel',
    id: 'cancelReplacement',
    summary: 'Cancel a replacement; new versions stay, and no further versions are revoked',
    access,
    query: noQuery,
    replies: { 200: { description: 'canceled', schema: replacementSchema } },
    problems: ['replacement_not_found', 'replacement_finished'],
    handle: async (call) => {
      const { vault } = call.context;
      const { id } = await replacementIn('POST', call);
      await cancelReplacement(vault, call.actor, id);
      return json(200, await viewReplacement(vault, id));
    },
  }),
];

type Place = Omit<Call, 'query' | 'body'>;

/** Which certificates are within the caller's reach. Throws `forbidden` for a single one that is not. */
async function permitted(
  method: Method,
  call: Place,
  { certificate }: ReplacementSelection,
): Promise<Permits> {
  if (certificate !== undefined) await requireCertificateInReach(method, call, certificate);
  const { context, identity } = call;
  const reach = reachOf(identity);
  if (reach === undefined) return () => true;
  return async (name) => isWithinReach({ reach }, await context.labels.of(name));
}

/** The replacement of the path. A caller with a reach has access to its own only, and learns nothing of others. */
async function replacementIn(method: Method, call: Place): Promise<ReplacementView> {
  const { context, params, actor, identity } = call;
  const id = Number(params.id);
  if (reachOf(identity) === undefined) return viewReplacement(context.vault, id);
  const own = await viewReplacement(context.vault, id).catch(() => undefined);
  if (own?.created_by !== actor.name) {
    await recordRefused(method, call, 'outside its reach', (who) => requireReach(who, []));
  }
  return viewReplacement(context.vault, id);
}

function described({ issuer, labels, certificate }: ReplacementSelection): string {
  if (certificate !== undefined) return `the certificate ${certificate}`;
  if (issuer !== undefined) return `all certificates of the issuer ${issuer}`;
  return `all certificates with the labels ${labels?.join(', ')}`;
}

/** Without certificates that were found by labels which the vault did not write. */
async function* withinReach(
  portions: AsyncIterable<readonly ReplacedCertificate[]>,
  labels: KnownLabels,
  reach: readonly string[],
): AsyncGenerator<readonly ReplacedCertificate[]> {
  for await (const rows of portions) {
    const known = await Promise.all(rows.map(({ name }) => labels.of(name)));
    yield rows.filter((_, index) => isWithinReach({ reach }, known[index] ?? []));
  }
}
