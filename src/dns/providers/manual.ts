/** Provider `manual`: a person makes the record, told by the log what it has to be. */
import { z } from 'zod';
import type { DnsProviderType } from '../dns-provider.ts';

const config = z.strictObject({});

export const manual: DnsProviderType<Record<string, never>> = {
  type: 'manual',
  title: 'manual: the vault shows the record and waits until you create it',
  config,
  create: (_settings, { log }) => ({
    byHand: true,
    present: async ({ name, value }) => {
      log.warn(
        { name, type: 'TXT', value },
        'create this DNS record by hand; keep other records at the name',
      );
    },
    remove: async ({ name, value }) => {
      log.info({ name, type: 'TXT', value }, 'this DNS record is no longer needed and can be removed');
    },
  }),
};
