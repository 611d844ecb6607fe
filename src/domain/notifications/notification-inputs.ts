/** What may be asked of notification channels, checked in one place for every way in. */
import { z } from 'zod';
import { issuerName } from '../inputs.ts';
import { alarmEvents, channelEvents } from './notification-events.ts';

const event = z.enum(channelEvents, {
  error: ({ input }) => `${JSON.stringify(input)} is not an event: use one of ${channelEvents.join(', ')}`,
});

const events = z.array(event).transform((list) => channelEvents.filter((known) => list.includes(known)));

const certificates = z
  .array(
    z.string().regex(/^[A-Za-z0-9*._-]{1,128}$/, {
      error: 'a pattern has letters, digits, dots, dashes, underscores, and * for any characters',
    }),
  )
  .max(100, 'a channel has at most 100 patterns')
  .transform((list) => (list.includes('*') ? [] : [...new Set(list)]));

const digestAt = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$/, {
  error: 'a digest has a time of the day in UTC, such as 07:00',
});

const digestDays = z
  .int({ error: 'that is no number of days' })
  .min(1, 'at least one day')
  .max(90, 'at most 90 days');

export const createChannelInput = z.strictObject({
  name: issuerName,
  type: z.string(),
  events: events.default([...alarmEvents]),
  /** None for all. */
  certificates: certificates.default([]),
  /** `HH:MM` in UTC. */
  digest_at: digestAt.nullable().default(null),
  digest_days: digestDays.default(14),
});

export type CreateChannelInput = z.output<typeof createChannelInput>;

/** What of a channel may change; what is not named stays. */
export const updateChannelInput = z.strictObject({
  events: events.optional(),
  certificates: certificates.optional(),
  digest_at: digestAt.nullable().optional(),
  digest_days: digestDays.optional(),
  disabled: z.boolean().optional(),
});

export type UpdateChannelInput = z.output<typeof updateChannelInput>;
