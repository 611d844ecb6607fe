/**
 * ACME clients for administrators: create and rotate (and show the key once), list, show, change, revoke and delete.
 */
import { z } from 'zod';
import { acmeDirectoryUrl } from '../../base/acme-recipes.ts';
import { Problem } from '../../base/problem.ts';
import { changeAcmeClient } from '../../domain/acme-server/clients/acme-client-change.ts';
import {
  createAcmeClientInput,
  updateAcmeClientInput,
} from '../../domain/acme-server/clients/acme-client-inputs.ts';
import { type AcmeClientKey, textOfKey } from '../../domain/acme-server/clients/acme-client-keys.ts';
import {
  type AcmeClientView,
  pageOfAcmeClients,
  viewAcmeClient,
} from '../../domain/acme-server/clients/acme-client-views.ts';
import {
  createAcmeClient,
  deleteAcmeClient,
  revokeAcmeClient,
  rotateAcmeClient,
} from '../../domain/acme-server/clients/acme-clients.ts';
import { requireReach } from '../../domain/labels/reach.ts';
import { recordRefused } from '../auth/recorded-refusal.ts';
import { acmeClientSchema, createdAcmeClientSchema } from '../openapi/acme-client-schemas.ts';
import { labelledQuery } from '../openapi/administration-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent, type Reply } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Route, route } from '../request/route.ts';
import { labelledPageReply } from './list-reply.ts';

const access = { kind: 'administrator' } as const;

export const acmeClientRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/acme-clients',
    id: 'listAcmeClients',
    summary: 'List ACME clients, oldest first, without their keys',
    access,
    query: labelledQuery,
    replies: { 200: { description: 'a page', schema: z.array(acmeClientSchema), headers: ['Link'] } },
    problems: [],
    handle: (call) => labelledPageReply(call, (page) => pageOfAcmeClients(call.context.vault, page)),
  }),
  route({
    method: 'POST',
    path: '/api/v1/acme-clients',
    id: 'createAcmeClient',
    summary: 'Create an ACME client; only this response contains its HMAC key',
    access,
    query: noQuery,
    body: createAcmeClientInput,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'made', schema: createdAcmeClientSchema } },
    problems: ['acme_client_exists'],
    handle: async ({ context: { vault }, actor, body, baseUrl }) => {
      const { id, key } = await createAcmeClient(vault, actor, body);
      return keyReply(201, await viewAcmeClient(vault, id), key, baseUrl);
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/acme-clients/{id}',
    id: 'getAcmeClient',
    summary: 'Show an ACME client, without its HMAC key',
    access,
    query: noQuery,
    replies: { 200: { description: 'the client', schema: acmeClientSchema } },
    problems: ['acme_client_not_found'],
    handle: async (call) => {
      const client = await viewAcmeClient(call.context.vault, idOf(call.params.id));
      await recordRefused('GET', call, 'outside its reach', (who) => requireReach(who, client.labels));
      return json(200, client);
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/acme-clients/{id}',
    id: 'updateAcmeClient',
    summary: 'Change an ACME client with immediate effect; what the body does not name stays the same',
    access,
    query: noQuery,
    body: updateAcmeClientInput,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'the changed client', schema: acmeClientSchema } },
    problems: ['acme_client_not_found', 'acme_client_inactive', 'acme_client_exists'],
    handle: async ({ context: { vault }, actor, params, body }) => {
      const id = idOf(params.id);
      await changeAcmeClient(vault, actor, id, body);
      return json(200, await viewAcmeClient(vault, id));
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/acme-clients/{id}/rotate',
    id: 'rotateAcmeClient',
    summary: 'Replace the key of an ACME client at once; accounts that exist keep working',
    access,
    query: noQuery,
    replies: { 200: { description: 'the client with its new key', schema: createdAcmeClientSchema } },
    problems: ['acme_client_not_found', 'acme_client_inactive'],
    handle: async ({ context: { vault }, actor, params, baseUrl }) => {
      const id = idOf(params.id);
      const { key } = await rotateAcmeClient(vault, actor, id);
      return keyReply(200, await viewAcmeClient(vault, id), key, baseUrl);
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/acme-clients/{id}/revoke',
    id: 'revokeAcmeClient',
    summary: 'Revoke an ACME client and its accounts immediately; repeating the request has no effect',
    access,
    query: noQuery,
    replies: { 200: { description: 'the revoked client', schema: acmeClientSchema } },
    problems: ['acme_client_not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      const id = idOf(params.id);
      await revokeAcmeClient(vault, actor, id);
      return json(200, await viewAcmeClient(vault, id));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/acme-clients/{id}',
    id: 'deleteAcmeClient',
    summary: 'Delete a revoked ACME client with its accounts; its certificates stay',
    access,
    query: noQuery,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['acme_client_not_found', 'acme_client_active'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteAcmeClient(vault, actor, idOf(params.id));
      return noContent;
    },
  }),
];

/** The only response with the HMAC key; the kid is that of the key, also if another rotation followed. */
function keyReply(status: number, view: AcmeClientView, key: AcmeClientKey, baseUrl: string): Reply {
  const directories = view.issuers.map((issuer) => ({ issuer, url: acmeDirectoryUrl(baseUrl, issuer) }));
  return json(status, { ...view, kid: key.kid, hmac_key: textOfKey(key).expose(), directories });
}

function idOf(text = ''): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Problem('acme_client_not_found');
}
