/**
 * Enrollments: administrators create (and show once), list, show, revoke and delete tokens; machines exchange one for
 * an API key of their own.
 */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import { viewApiKey } from '../../../domain/access/api-key-views.ts';
import { requireGrantable } from '../../../domain/access/key-granting.ts';
import {
  createEnrollmentInput,
  exchangeInput,
  keySettings,
  revokeEnrollmentInput,
} from '../../../domain/enrollments/enrollment-inputs.ts';
import { pageOfEnrollments, viewEnrollment } from '../../../domain/enrollments/enrollment-views.ts';
import {
  createEnrollment,
  deleteEnrollment,
  revokeEnrollment,
} from '../../../domain/enrollments/enrollments.ts';
import {
  exchangeToken,
  type PresentedEnrollment,
  presentedEnrollment,
} from '../../../domain/enrollments/exchange.ts';
import { reachOf, requireReach } from '../../../domain/labels/reach.ts';
import { readBearer } from '../../auth/access.ts';
import { recordRefused } from '../../auth/recorded-refusal.ts';
import { createdApiKeySchema, labelledQuery } from '../../openapi/administration-schemas.ts';
import {
  createdEnrollmentSchema,
  enrollmentSchema,
  revokedEnrollmentSchema,
} from '../../openapi/enrollment-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent } from '../../request/reply.ts';
import { longBodyLimit } from '../../request/request-body.ts';
import { type Call, type Route, route } from '../../request/route.ts';
import { labelledPageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;

/** In bytes: a host and a text of the client, several times. */
const exchangeLimit = 4096;

export const enrollmentRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/enrollments',
    id: 'listEnrollments',
    summary: 'List enrollments, oldest first, without their tokens',
    access,
    query: labelledQuery,
    replies: { 200: { description: 'a page', schema: z.array(enrollmentSchema), headers: ['Link'] } },
    problems: [],
    handle: (call) => labelledPageReply(call, (page) => pageOfEnrollments(call.context.vault, page)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/enrollments',
    id: 'createEnrollment',
    summary: 'Create an enrollment; only this response contains its token',
    access,
    query: noQuery,
    body: createEnrollmentInput,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'made', schema: createdEnrollmentSchema } },
    problems: [],
    handle: async (call) => {
      const { vault, labels } = call.context;
      // No more than the caller could give to an API key.
      const settings = keySettings(call.body, call.body.name ?? 'enrollment');
      await recordRefused('POST', call, 'more rights than its own', (identity) =>
        requireGrantable(labels, identity, settings),
      );
      const { id, token } = await createEnrollment(vault, call.actor, call.body);
      return json(201, { ...(await viewEnrollment(vault, id)), token: token.expose() });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/enrollments/exchange',
    id: 'exchangeEnrollment',
    summary:
      'Exchange an enrollment token, sent as "Authorization: Bearer", for an API key named after the host; only this response contains the raw key',
    access: { kind: 'public' },
    query: noQuery,
    body: exchangeInput,
    bodyLimit: exchangeLimit,
    replies: {
      201: { description: 'the new key', schema: createdApiKeySchema },
      200: {
        description: 'the request was repeated: its key, with a new secret in place of the earlier one',
        schema: createdApiKeySchema,
      },
    },
    problems: [
      ...(['unauthenticated', 'forbidden', 'enrollment_inactive', 'api_key_inactive'] as const),
      ...(['api_key_exists', 'rate_limited'] as const),
    ],
    handle: async (call) => {
      const { vault, keyLimits } = call.context;
      const found = await presented(call);
      const actor = { ...call.actor, name: found.actorName };
      call.nameActor(actor.name);
      try {
        // Each repeated request writes a new secret and an event, however few uses the token has.
        const excess = keyLimits.exchangeExcessOf(found.id);
        if (excess !== undefined) throw excess;
        const { id, raw, isRepeated } = await exchangeToken(vault, actor, found, call.body);
        return json(isRepeated ? 200 : 201, { ...(await viewApiKey(vault, id)), key: raw.expose() });
      } catch (error) {
        if (error instanceof Problem) await recordRefusedToken(call, found, error);
        throw error;
      }
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/enrollments/{id}',
    id: 'getEnrollment',
    summary: 'Show an enrollment, without its token; listApiKeys has the keys that it created',
    access,
    query: noQuery,
    replies: { 200: { description: 'the enrollment', schema: enrollmentSchema } },
    problems: ['enrollment_not_found'],
    handle: async (call) => {
      const enrollment = await viewEnrollment(call.context.vault, idOf(call.params.id));
      await recordRefused('GET', call, 'outside its reach', (who) => requireReach(who, enrollment.labels));
      return json(200, enrollment);
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/enrollments/{id}/revoke',
    id: 'revokeEnrollment',
    summary:
      'Revoke the token of an enrollment immediately, alone or with the API keys that it created; repeating the request has no effect',
    access,
    query: noQuery,
    body: revokeEnrollmentInput,
    replies: { 200: { description: 'the revoked enrollment', schema: revokedEnrollmentSchema } },
    problems: ['enrollment_not_found'],
    handle: async (call) => {
      const { vault } = call.context;
      const id = idOf(call.params.id);
      const { labels } = await viewEnrollment(vault, id);
      await recordRefused('POST', call, 'outside its reach', (identity) => requireReach(identity, labels));
      const keys = await revokeEnrollment(vault, call.actor, id, call.body, reachOf(call.identity));
      return json(200, { ...(await viewEnrollment(vault, id)), revoked_api_keys: keys });
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/enrollments/{id}',
    id: 'deleteEnrollment',
    summary: 'Delete an enrollment that is revoked, used up or expired; its API keys stay',
    access,
    query: noQuery,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['enrollment_not_found', 'enrollment_active'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteEnrollment(vault, actor, idOf(params.id));
      return noContent;
    },
  }),
];

const unknownToken = new Problem('unauthenticated', { detail: 'A valid enrollment token is required.' });

/** The enrollment of the token in the header. Throws `unauthenticated`, or `rate_limited` if that happens too often. */
async function presented({ context, actor, headerLines }: Call): Promise<PresentedEnrollment> {
  const { vault, keyLimits } = context;
  const raw = readBearer(headerLines('authorization')[0]);
  const found = raw === undefined ? undefined : await presentedEnrollment(vault, raw);
  if (found !== undefined) return found;
  if (raw !== undefined) {
    vault.meter.authenticationFailed('enrollment');
    keyLimits.fail(actor.ip, 'enrollment tokens');
  }
  throw unknownToken;
}

/** Records why a token was refused, at most some times per hour, and counts it as a failure of the address. */
async function recordRefusedToken(
  { context: { vault, keyLimits }, actor, path }: Call,
  { id, actorName }: PresentedEnrollment,
  { code, status }: Problem,
): Promise<void> {
  if (status >= 500) return;
  vault.meter.authenticationFailed('enrollment');
  const subject = `enrollment:${id}`;
  await vault.refusals.record(
    {
      actor: { ...actor, name: actorName },
      action: 'access.refuse',
      subject,
      target: `POST ${path}`,
      detail: { code },
    },
    keyLimits,
  );
  keyLimits.fail(actor.ip, 'enrollment tokens');
}

function idOf(text = ''): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Problem('enrollment_not_found');
}
