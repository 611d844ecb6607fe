/**
 * Notification channels for administrators: create with credentials that are never returned, change, test, and their
 * deliveries.
 */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { Secret } from '../../base/secret.ts';
import { channelTypes } from '../../channels/channel-types.ts';
import type { DatabaseContext } from '../../domain/contexts.ts';
import { labelsInFilter } from '../../domain/labels/label-inputs.ts';
import { reachOf } from '../../domain/labels/reach.ts';
import {
  addChannel,
  changeChannel,
  removeChannel,
  requireChannel,
  testChannel,
} from '../../domain/notifications/notification-channels.ts';
import {
  type DeliveryView,
  viewChannel,
  viewChannels,
  viewDeliveries,
} from '../../domain/notifications/notification-views.ts';
import { inPortions } from '../../domain/portions.ts';
import {
  addChannelBody,
  changeChannelBody,
  changedChannelSchema,
  channelSchema,
  channelsQuery,
  channelTypeSchema,
  deliveriesQuery,
  deliverySchema,
} from '../openapi/notification-schemas.ts';
import { noQuery } from '../openapi/schemas.ts';
import { json, noContent } from '../request/reply.ts';
import { longBodyLimit } from '../request/request-body.ts';
import { type Route, route } from '../request/route.ts';
import { following, pageReply } from './list-reply.ts';
import { answeringOperators } from './operator-answers.ts';

const access = { kind: 'administrator' } as const;

/** They run local programs; a session must not become a shell. */
const commandLineOnly = new Set(['exec']);

const path = '/api/v1/notification-channels';

export const notificationRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path,
    id: 'listNotificationChannels',
    summary: 'List notification channels by name, without their credentials',
    access,
    query: channelsQuery,
    replies: { 200: { description: 'a page', schema: z.array(channelSchema), headers: ['Link'] } },
    problems: [],
    handle: async ({ context: { vault }, ...call }) => {
      const { label } = call.query;
      const labels = labelsInFilter(label);
      const channels = await viewChannels(vault, { labels, reach: reachOf(call.identity) });
      return pageReply(
        following(channels, call.query),
        call,
        (channel) => channel,
        ({ name }) => name,
        { label },
      );
    },
  }),
  route({
    method: 'POST',
    path,
    id: 'addNotificationChannel',
    summary: 'Create a notification channel: webhook, email, chat or paging',
    access,
    query: noQuery,
    body: addChannelBody,
    bodyLimit: longBodyLimit,
    replies: { 201: { description: 'created; recorded in the audit log', schema: changedChannelSchema } },
    problems: [],
    handle: async ({ context: { vault }, actor, body: { settings, ...input } }) => {
      if (commandLineOnly.has(input.type)) throw onCommandLine('type', input.type);
      const made = await answeringOperators(() => addChannel(vault, actor, input, sent(settings)));
      return json(201, await changed(vault, input.name, made));
    },
  }),
  route({
    method: 'PATCH',
    path: `${path}/{name}`,
    id: 'changeNotificationChannel',
    summary: 'Change a notification channel; omitted members stay unchanged',
    access,
    query: noQuery,
    body: changeChannelBody,
    bodyLimit: longBodyLimit,
    replies: { 200: { description: 'changed; recorded in the audit log', schema: changedChannelSchema } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params, body: { settings, ...input } }) => {
      const { name, type } = await at(vault, params.name);
      if (settings !== undefined && commandLineOnly.has(type)) throw onCommandLine('settings', type);
      const replacement = settings === undefined ? undefined : sent(settings);
      const made = await answeringOperators(() => changeChannel(vault, actor, name, input, replacement));
      return json(200, await changed(vault, name, made));
    },
  }),
  route({
    method: 'DELETE',
    path: `${path}/{name}`,
    id: 'removeNotificationChannel',
    summary: 'Delete a notification channel with its settings and its deliveries',
    access,
    query: noQuery,
    approval: async ({ context: { vault }, params }) =>
      `Delete the notification channel ${(await at(vault, params.name)).name}`,
    replies: { 204: { description: 'deleted; recorded in the audit log', contentType: 'none' } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, actor, params }) => {
      const { name } = await at(vault, params.name);
      await removeChannel(vault, actor, name);
      return noContent;
    },
  }),
  route({
    method: 'POST',
    path: `${path}/{name}/test`,
    id: 'testNotificationChannel',
    summary: 'Send a test message now and report whether it was accepted',
    access,
    query: noQuery,
    replies: { 204: { description: 'the recipient accepted the message', contentType: 'none' } },
    problems: ['not_found', 'invalid_request'],
    handle: async ({ context: { vault }, actor, params, gone }) => {
      const { name } = await at(vault, params.name);
      await answeringOperators(() => testChannel(vault, actor, name, gone()));
      return noContent;
    },
  }),
  route({
    method: 'GET',
    path: '/api/v1/notification-channel-types',
    id: 'listNotificationChannelTypes',
    summary: 'List the types of notification channels and their settings',
    access,
    query: noQuery,
    replies: { 200: { description: 'all types', schema: z.array(channelTypeSchema) } },
    problems: [],
    handle: async () =>
      json(
        200,
        [...channelTypes.values()].map(({ type, title, config }) => ({
          type,
          title,
          settings: z.toJSONSchema(config, { io: 'input', unrepresentable: 'any' }),
          command_line_only: commandLineOnly.has(type),
        })),
      ),
  }),
  route({
    method: 'GET',
    path: '/api/v1/notification-deliveries',
    id: 'listNotificationDeliveries',
    summary: 'List deliveries of notifications, newest first: delivered, pending and failed',
    access,
    query: deliveriesQuery,
    replies: { 200: { description: 'a page', schema: z.array(deliverySchema), headers: ['Link'] } },
    problems: ['not_found'],
    handle: async ({ context: { vault }, ...call }) => {
      const { channel, status, after, limit } = call.query;
      const channelId = channel === undefined ? undefined : (await at(vault, channel)).id;
      return pageReply(
        inPortions<DeliveryView>(vault, limit + 1, (count, last) =>
          viewDeliveries(vault, { channelId, status, before: last?.id ?? after, limit: count }),
        ),
        call,
        (delivery) => delivery,
        ({ id }) => id,
        { channel, status },
      );
    },
  }),
];

function at({ db }: DatabaseContext, name = '') {
  return requireChannel(db.reader, name);
}

async function changed(vault: DatabaseContext, name: string, made: Secret<string> | undefined) {
  const view = await viewChannel(vault, await requireChannel(vault.db.reader, name));
  return { ...view, secret: made?.expose() ?? null };
}

function sent(settings: Readonly<Record<string, unknown>>): Secret {
  return new Secret(Buffer.from(JSON.stringify(settings)));
}

function onCommandLine(member: string, type: string): Problem {
  const message = `channels of type ${type} run local programs and can only be added on the vault's host`;
  return new Problem('invalid_request', {
    detail: `${member}: ${message}.`,
    hint: `Run "vault notification add ${type}" there.`,
    errors: [{ path: member, message }],
  });
}
