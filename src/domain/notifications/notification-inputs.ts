/** Input schemas for notification channels, shared by the API and the command line. */
import { z } from 'zod';
import { issuerName } from '../input-strings.ts';
import { anyLabels, objectLabels } from '../labels/label-inputs.ts';
import { channelEvents, usualEvents } from './notification-events.ts';

const event = z.enum(channelEvents, {
  error: ({ input }) => `${JSON.stringify(input)} is not an event; use one of ${channelEvents.join(', ')}`,
});

const events = z.array(event).transform((list) => channelEvents.filter((known) => list.includes(known)));

const certificates = z
  .array(
    z.string().regex(/^[A-Za-z0-9*._-]{1,128}$/, {
      error: 'a pattern has up to 128 letters, digits, dots, dashes, underscores, and * for any characters',
    }),
  )
  .max(100, 'a channel has at most 100 patterns')
  .transform((list) => (list.includes('*') ? [] : [...new Set(list)]));

const digestAt = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, {
  error: 'the time of a digest is HH:MM in UTC, such as 07:00',
});

const digestDays = z
  .int({ error: 'the days of a digest must be a whole number' })
  .min(1, 'a digest looks at least 1 day ahead')
  .max(90, 'a digest looks at most 90 days ahead');

export const createChannelInput = z.strictObject({
  name: issuerName,
  type: z.string(),
  events: events.default([...usualEvents]),
  /** Patterns; empty for all certificates. */
  certificates: certificates.default([]),
  /** `HH:MM` in UTC. */
  digest_at: digestAt.nullable().default(null),
  digest_days: digestDays.default(14),
  /** Labels of certificates; empty for all. */
  certificate_labels: anyLabels.default([]),
  labels: objectLabels.default([]),
});

export type CreateChannelInput = z.output<typeof createChannelInput>;

/** Changes to a channel; omitted fields stay the same. */
export const updateChannelInput = z.strictObject({
  events: events.optional(),
  certificates: certificates.optional(),
  digest_at: digestAt.nullable().optional(),
  digest_days: digestDays.optional(),
  certificate_labels: anyLabels.optional(),
  labels: objectLabels.optional(),
  disabled: z.boolean().optional(),
});

export type UpdateChannelInput = z.output<typeof updateChannelInput>;
