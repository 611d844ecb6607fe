/** Schemas of notification channels and deliveries, for administrators. */
import { z } from 'zod';
import { channelTypes } from '../../channels/channel-types.ts';
import { issuerNamePattern } from '../../domain/input-strings.ts';
import { labelFilter } from '../../domain/labels/label-inputs.ts';
import { createChannelInput, updateChannelInput } from '../../domain/notifications/notification-inputs.ts';
import type { ChannelView, DeliveryView } from '../../domain/notifications/notification-views.ts';
import { byNameQuery } from './administration-schemas.ts';
import { digits, limit, newTypeSettings, settingsType, time, typeSettings } from './schemas.ts';

const statuses = ['queued', 'sending', 'delivered', 'failed'] as const;

const channel = z.strictObject({
  name: z.string(),
  type: z.string().describe(`one of ${[...channelTypes.keys()].join(', ')}`),
  target: z.string().describe('destination: the origin of a URL, email addresses, or a program'),
  events: z.array(z.string()),
  certificates: z
    .array(z.string())
    .describe('certificate name patterns, * matches any characters; [] for all'),
  certificate_labels: z.array(z.string()).describe('only certificates with any of these labels; [] for all'),
  labels: z.array(z.string()).describe('labels of the channel, such as team=web, sorted'),
  digest_at: z.string().nullable().describe('HH:MM in UTC; null for no digest'),
  digest_days: z.int(),
  created_at: time,
  disabled_at: time.nullable(),
  disabled_reason: z.string().nullable(),
  waiting: z.int().describe('number of open deliveries'),
  last_delivery: z
    .strictObject({ at: time, event: z.string(), status: z.string(), error: z.string().nullable() })
    .nullable(),
});

export const channelSchema = channel.meta({ id: 'NotificationChannel' }) satisfies z.ZodType<ChannelView>;

export const changedChannelSchema = z
  .strictObject({
    ...channel.shape,
    secret: z
      .string()
      .nullable()
      .describe('the signing secret, if the vault generated one for a webhook; shown only once'),
  })
  .meta({ id: 'ChangedNotificationChannel' });

export const channelsQuery = byNameQuery.extend({ label: labelFilter.optional() });

export const addChannelBody = z.strictObject({ ...createChannelInput.shape, settings: typeSettings });

export const changeChannelBody = z.strictObject({
  ...updateChannelInput.shape,
  settings: newTypeSettings,
});

export const channelTypeSchema = settingsType('vault notification add').meta({
  id: 'NotificationChannelType',
});

export const deliverySchema = z
  .strictObject({
    id: z.int(),
    message_id: z.string().describe('id of the message, the same for all attempts'),
    channel: z.string(),
    event: z.string(),
    about: z.string().nullable().describe('name of the certificate, API key or private CA'),
    status: z.enum(statuses),
    attempts: z.int(),
    queued_at: time,
    last_attempt_at: time.nullable(),
    next_attempt_at: time.nullable().describe('null once the delivery is finished'),
    ended_at: time.nullable(),
    error: z.string().nullable().describe('why the delivery failed, or which recipients were rejected'),
  })
  .meta({ id: 'NotificationDelivery' }) satisfies z.ZodType<DeliveryView>;

export const deliveriesQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('return deliveries older than this id'),
  channel: z
    .string()
    .max(64)
    .meta({ pattern: issuerNamePattern })
    .optional()
    .describe('only deliveries of this channel'),
  status: z.enum(statuses).optional(),
});
