/** Provider `manual`: a person makes the record, told by the log what it has to be. */
import { z } from 'zod';
import type { DnsProviderType } from '../dns-provider.ts';

const config = z.strictObject({});

export const manual: DnsProviderType<Record<string, never>> = {
  type: 'manual',
  title: 'you, by hand: the vault shows the record and waits for it',
  config,
  create: (_settings, { log }) => ({
    byHand: true,
    present: async ({ name, value }) => {
      log.warn(
        { name, type: 'TXT', value },
        'Please create this DNS record; leave others at the name alone.',
      );
    },
    remove: async ({ name, value }) => {
      log.info({ name, type: 'TXT', value }, 'This DNS record is not needed any more and may be removed.');
    },
  }),
};
