/** Schemas of ACME clients, for administrators. */
import { z } from 'zod';
import { validationTypes } from '../../domain/acme-server/clients/acme-client-inputs.ts';
import type { AcmeClientView } from '../../domain/acme-server/clients/acme-client-views.ts';
import { time } from './schemas.ts';

const acmeClient = z.strictObject({
  id: z.int(),
  name: z.string(),
  kid: z.string().describe('the key identifier for external account binding'),
  domains: z.array(z.string()).describe('patterns of the names that it may order'),
  issuers: z.array(z.string()),
  profiles: z.array(z.string()).describe('profiles of private CAs, as issuer/profile; [] for any'),
  allowed_networks: z.array(z.string()).describe('networks it may connect from; [] for any'),
  validation: z
    .array(z.enum(validationTypes))
    .describe('challenges by which the vault validates its names; [] trusts the binding'),
  rate: z.int().nullable().describe('new orders per hour; null for no limit'),
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable(),
  last_used_ip: z.string().nullable(),
  state: z.enum(['active', 'expired', 'revoked']),
  labels: z.array(z.string()).describe('labels such as team=web, sorted'),
});

export const acmeClientSchema = acmeClient.meta({ id: 'AcmeClient' }) satisfies z.ZodType<AcmeClientView>;

export const createdAcmeClientSchema = z
  .strictObject({
    ...acmeClient.shape,
    hmac_key: z.string().describe('the HMAC key in base64url, shown only once'),
    directories: z
      .array(z.strictObject({ issuer: z.string(), url: z.string() }))
      .describe('the ACME directory of each issuer'),
  })
  .meta({ id: 'CreatedAcmeClient' });
