/** The schema of the profiles of private CAs. */
import { z } from 'zod';
import { keyTypes } from '../../base/key-type.ts';
import { usages } from '../../base/leaf-names.ts';
import type { ProfileView } from '../../domain/issuers/issuer-profiles.ts';
import { nameTypes } from '../../domain/private-ca/profile-settings.ts';
import { time } from './schemas.ts';

export const profileSchema = z
  .strictObject({
    issuer: z.string().describe('the private CA'),
    name: z.string(),
    usage: z.enum(usages).nullable().describe('the usage of its certificates; null for any'),
    key_types: z
      .array(z.enum(keyTypes))
      .readonly()
      .describe('the permitted types of keys, the first for new keys; [] for any'),
    lifetime: z
      .string()
      .nullable()
      .describe('how long certificates are valid that ask for no lifetime; null for that of the CA'),
    max_lifetime: z.string().nullable().describe('the longest lifetime; null for any'),
    subject: z.array(z.string()).readonly().describe('fields of the subject that each certificate has'),
    name_types: z.array(z.enum(nameTypes)).readonly().describe('the permitted kinds of names; [] for all'),
    permit_domains: z.array(z.string()).readonly().describe('the permitted domains, with all names below'),
    permit_ips: z.array(z.string()).readonly().describe('the permitted networks'),
    created_at: time,
  })
  .meta({ id: 'Profile' }) satisfies z.ZodType<ProfileView>;
