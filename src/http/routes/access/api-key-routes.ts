/** API keys for administrators: create and rotate (and show once), list, change, revoke and delete. */
import { z } from 'zod';
import { Problem } from '../../../base/problem.ts';
import type { Secret } from '../../../base/secret.ts';
import { formatTimestampOrNull } from '../../../base/timestamp.ts';
import { changeApiKey } from '../../../domain/access/api-key-change.ts';
import {
  rotateApiKeyInput,
  type UpdateApiKeyInput,
  updateApiKeyInput,
} from '../../../domain/access/api-key-inputs.ts';
import { rotateApiKey } from '../../../domain/access/api-key-rotation.ts';
import { type ApiKeyView, pageOfApiKeys, viewApiKey } from '../../../domain/access/api-key-views.ts';
import { createApiKey, deleteApiKey, revokeApiKey } from '../../../domain/access/api-keys.ts';
import { requireGrantable, requireKeyless } from '../../../domain/access/key-granting.ts';
import { createApiKeyInput } from '../../../domain/inputs.ts';
import { namedLabels } from '../../../domain/labels/key-labels.ts';
import { requireReach } from '../../../domain/labels/reach.ts';
import { recordRefused } from '../../auth/recorded-refusal.ts';
import { apiKeySchema, apiKeysQuery, createdApiKeySchema } from '../../openapi/administration-schemas.ts';
import { noQuery } from '../../openapi/schemas.ts';
import { json, noContent, type Reply } from '../../request/reply.ts';
import { longBodyLimit } from '../../request/request-body.ts';
import { type Route, route } from '../../request/route.ts';
import { labelledPageReply } from '../list-reply.ts';

const access = { kind: 'administrator' } as const;

/** Why the audit log says that a key was refused. */
const tooMuch = 'more rights than its own';

export const apiKeyRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/api/v1/api-keys',
    id: 'listApiKeys',
    summary: 'List API keys, oldest first, without their secrets',
    access,
    query: apiKeysQuery,
    replies: { 200: { description: 'a page', schema: z.array(apiKeySchema), headers: ['Link'] } },
    problems: [],
    handle: (call) => {
      const { enrollment } = call.query;
      return labelledPageReply(call, (page) => pageOfApiKeys(call.context.vault, { ...page, enrollment }), {
        enrollment: enrollment?.toString(),
      });
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/api-keys',
    id: 'createApiKey',
    summary: 'Create an API key; only this response contains the raw key',
    access,
    query: noQuery,
    body: createApiKeyInput,
    bodyLimit: longBodyLimit,
    // Who holds a key that administers could request a change with it and approve it in person.
    approval: async (call) => {
      const { name, ...rights } = call.body;
      if (rights.role === null) return undefined;
      await recordRefused('POST', call, tooMuch, (identity) =>
        requireGrantable(call.context.labels, identity, call.body),
      );
      // Labels that it has not are no news of a new key.
      return `Create the API key ${name}: ${rightsText({ ...rights, ...withoutLabels, ...namedLabels(rights) })}`;
    },
    replies: { 201: { description: 'made', schema: createdApiKeySchema } },
    problems: ['api_key_exists'],
    handle: async (call) => {
      const { vault } = call.context;
      await recordRefused('POST', call, tooMuch, (identity) =>
        requireGrantable(call.context.labels, identity, call.body),
      );
      const { id, raw } = await createApiKey(vault, call.actor, call.body);
      return keyReply(201, await viewApiKey(vault, id), raw);
    },
  }),
  route({
    method: 'PATCH',
    path: '/api/v1/api-keys/{id}',
    id: 'updateApiKey',
    summary: 'Change an API key with immediate effect; what the body does not name stays the same',
    access,
    query: noQuery,
    body: updateApiKeyInput,
    bodyLimit: longBodyLimit,
    approval: async ({ context: { vault }, params, body }) => {
      const { id, name, role } = await viewApiKey(vault, idOf(params.id));
      if (role === null && (body.role ?? null) === null) return undefined;
      return `Change the API key ${id} (${name}, role ${role ?? 'none'}): ${rightsText(body)}`;
    },
    replies: { 200: { description: 'the changed key', schema: apiKeySchema } },
    problems: ['api_key_not_found', 'api_key_inactive', 'api_key_exists'],
    handle: async (call) => {
      const { actor, body } = call;
      const { vault } = call.context;
      const id = idOf(call.params.id);
      const before = await viewApiKey(vault, id);
      await recordRefused('PATCH', call, tooMuch, (identity) => {
        requireKeyless(identity, before);
        requireKeyless(identity, { scopes: body.scopes ?? [], role: body.role ?? null });
      });
      await changeApiKey(vault, actor, id, body);
      return json(200, await viewApiKey(vault, id));
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/api-keys/{id}/rotate',
    id: 'rotateApiKey',
    summary: 'Replace the secret of an API key; only this response contains the new raw key',
    access,
    query: noQuery,
    body: rotateApiKeyInput,
    approval: async ({ context: { vault }, params }) => {
      const { id, name, role } = await viewApiKey(vault, idOf(params.id));
      return role === null ? undefined : `Rotate the API key ${id} (${name}, role ${role})`;
    },
    replies: { 200: { description: 'the key with its new secret', schema: createdApiKeySchema } },
    problems: ['api_key_not_found', 'api_key_inactive'],
    handle: async (call) => {
      const { actor, body } = call;
      const { vault } = call.context;
      const id = idOf(call.params.id);
      const rights = await viewApiKey(vault, id);
      await recordRefused('POST', call, tooMuch, (identity) => requireKeyless(identity, rights));
      const { raw } = await rotateApiKey(vault, actor, id, body);
      return keyReply(200, await viewApiKey(vault, id), raw);
    },
  }),
  route({
    method: 'POST',
    path: '/api/v1/api-keys/{id}/revoke',
    id: 'revokeApiKey',
    summary: 'Revoke an API key immediately; repeating the request has no effect',
    access,
    query: noQuery,
    replies: { 200: { description: 'the revoked key', schema: apiKeySchema } },
    problems: ['api_key_not_found'],
    handle: async (call) => {
      const { vault } = call.context;
      const id = idOf(call.params.id);
      const { labels } = await viewApiKey(vault, id);
      await recordRefused('POST', call, 'outside its reach', (identity) => requireReach(identity, labels));
      await revokeApiKey(vault, call.actor, id);
      return json(200, await viewApiKey(vault, id));
    },
  }),
  route({
    method: 'DELETE',
    path: '/api/v1/api-keys/{id}',
    id: 'deleteApiKey',
    summary: 'Delete a revoked API key',
    access,
    query: noQuery,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['api_key_not_found', 'api_key_active'],
    handle: async ({ context: { vault }, actor, params }) => {
      await deleteApiKey(vault, actor, idOf(params.id));
      return noContent;
    },
  }),
];

/** What an approver reads of the settings that a request names. */
function rightsText(rights: UpdateApiKeyInput): string {
  const { name, role, scopes, certificates, allowed_networks, profiles, client_certificate, expires_at } =
    rights;
  const { certificate_labels, reach, labels } = rights;
  const named = {
    name,
    role: role === null ? 'none' : role,
    scopes: listed(scopes),
    certificates: certificates === 'any' ? '*' : listed(certificates),
    'certificates with labels': listed(certificate_labels, 'none'),
    reach: listed(reach, 'everything'),
    labels: listed(labels, 'none'),
    networks: listed(allowed_networks),
    profiles: listed(profiles),
    'client certificate': client_certificate === null ? 'none' : client_certificate,
    expires: expires_at === undefined ? undefined : (formatTimestampOrNull(expires_at) ?? 'never'),
  };
  const said = Object.entries(named).filter(([, value]) => value !== undefined);
  return said.length === 0 ? 'no change' : said.map(([what, value]) => `${what} ${value}`).join('; ');
}

const withoutLabels = { certificate_labels: undefined, reach: undefined, labels: undefined };

/** An approver does not read ten thousand names. */
const maxListed = 20;

function listed(values: readonly string[] | undefined, ifEmpty = 'any'): string | undefined {
  if (values === undefined) return undefined;
  const rest = values.length > maxListed ? ` and ${values.length - maxListed} more` : '';
  return `${values.slice(0, maxListed).join(', ') || ifEmpty}${rest}`;
}

/** The only response with the raw key. */
function keyReply(status: number, view: ApiKeyView, raw: Secret<string>): Reply {
  return json(status, { ...view, key: raw.expose() });
}

function idOf(text = ''): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw new Problem('api_key_not_found');
}
