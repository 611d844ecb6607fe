/** Schemas of API keys, issuers and DNS providers, and of list queries, for administrators. */
import { z } from 'zod';
import { identifierPattern } from '../../base/identifier.ts';
import { roles } from '../../base/role.ts';
import { scopes } from '../../base/scope.ts';
import type { ApiKeyView } from '../../domain/access/api-key-views.ts';
import { issuerNamePattern } from '../../domain/input-strings.ts';
import { createDnsProviderInput } from '../../domain/inputs.ts';
import type { IssuerOffer } from '../../domain/issuers/issuer-offer.ts';
import type { DnsProviderView, IssuerView } from '../../domain/issuers/issuer-views.ts';
import { labelFilter } from '../../domain/labels/label-inputs.ts';
import { digits, limit, time } from './schemas.ts';

const name = z.string().max(128).meta({ pattern: issuerNamePattern }).optional();

/** For lists by name. */
export const byNameQuery = z.strictObject({
  limit,
  after: name.describe('return entries after this name'),
});

/** For lists by id, oldest first. */
export const byIdQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('return entries after this id'),
});

/** For lists of objects with labels, by id. */
export const labelledQuery = byIdQuery.extend({ label: labelFilter.optional() });

export const apiKeysQuery = labelledQuery.extend({
  enrollment: digits(z.int().min(1)).optional().describe('only keys that this enrollment created'),
});

const apiKey = z.strictObject({
  id: z.int(),
  name: z.string(),
  prefix: z.string(),
  scopes: z.array(z.enum(scopes)),
  certificates: z.array(z.string()).describe('["*"] for all certificates'),
  certificate_labels: z
    .array(z.string())
    .describe('labels: the key may also access certificates with any of them'),
  allowed_networks: z.array(z.string()).describe('networks the key may be used from; [] for any'),
  profiles: z
    .array(z.string())
    .describe('profiles of private CAs that the key may sign for, as issuer/profile; [] for any'),
  role: z.enum(roles).nullable().describe('what the key may administer; null for nothing'),
  reach: z.array(z.string()).describe('labels that confine what the key may do; [] for everything'),
  labels: z.array(z.string()).describe('labels of the key, such as team=web, sorted'),
  client_certificate: z
    .string()
    .nullable()
    .describe('the certificate that clients of the key present in TLS; null if they need none'),
  created_at: time,
  expires_at: time.nullable(),
  revoked_at: time.nullable(),
  last_used_at: time.nullable(),
  last_used_ip: z.string().nullable(),
  state: z.enum(['active', 'expired', 'revoked']),
  previous_prefix: z
    .string()
    .nullable()
    .describe('prefix of the secret before the last rotation, while it is valid'),
  previous_expires_at: time.nullable().describe('until when that secret is valid'),
  enrollment: z.int().nullable().describe('the id of the enrollment that created the key; null for none'),
});

export const apiKeySchema = apiKey.meta({ id: 'ApiKey' }) satisfies z.ZodType<ApiKeyView>;

export const createdApiKeySchema = z
  .strictObject({ ...apiKey.shape, key: z.string().describe('the raw key, shown only once') })
  .meta({ id: 'CreatedApiKey' });

const privateCaSchema = z.strictObject({
  common_name: z.string().nullable().describe('of its root; null for a name with random digits'),
  permit_domains: z.array(z.string()).readonly().describe('domains that it issues for, with all names below'),
  permit_ips: z.array(z.string()).readonly().describe('networks that it issues for'),
  path_length: z.int().describe('how many CAs may follow its root in a chain'),
  lifetime: z.string().describe('how long certificates are valid that ask for no lifetime'),
  key_type: z.string().describe('the type of new keys that ask for none'),
});

export const issuerSchema = z
  .strictObject({
    name: z.string(),
    type: z.string().describe('local-ca or acme'),
    directory_url: z.string().nullable(),
    email: z.string().nullable(),
    eab_kid: z.string().nullable(),
    profile: z.string().nullable(),
    preferred_chain: z.string().nullable(),
    ca_pem: z.string().nullable(),
    terms_of_service: z.string().nullable().describe('URL of the accepted terms of service'),
    account: z.string().nullable().describe('id of the current ACME account; null before the first order'),
    paused_until: time.nullable(),
    pause_reason: z.string().nullable(),
    private_ca: privateCaSchema.nullable().describe('the settings of a private CA; null for an ACME CA'),
    created_at: time,
  })
  .meta({ id: 'Issuer' }) satisfies z.ZodType<IssuerView>;

export const issuerTestSchema = z
  .strictObject({
    directory_url: z.string(),
    profiles: z
      .array(z.strictObject({ name: z.string(), description: z.string() }))
      .describe('certificate profiles that the CA offers; empty if it has none'),
    terms_of_service: z.string().nullable(),
    external_account_required: z.boolean(),
    renewal_information: z.boolean().describe('whether the CA supports renewal information (ARI, RFC 9773)'),
  })
  .meta({ id: 'IssuerOffer' }) satisfies z.ZodType<IssuerOffer>;

export const dnsProviderSchema = z
  .strictObject({ name: z.string(), type: z.string(), zones: z.array(z.string()), created_at: time })
  .meta({ id: 'DnsProvider' }) satisfies z.ZodType<DnsProviderView>;

export const addDnsProviderBody = z.strictObject({
  ...createDnsProviderInput.shape,
  config: z
    .record(z.string(), z.unknown())
    .default({})
    .describe('settings and credentials; see the JSON Schema of the type'),
});

export const dnsProviderTypeSchema = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    config: z.looseObject({}).describe('JSON Schema of the settings and credentials'),
    command_line_only: z
      .boolean()
      .describe('runs a local program; can only be added with "vault dns-provider add"'),
  })
  .meta({ id: 'DnsProviderType' });

const step = z.strictObject({ at: time, text: z.string() });

export const dnsTestBody = z.strictObject({ domain: z.string().meta({ pattern: identifierPattern }) });

export const dnsTestSchema = z
  .strictObject({ domain: z.string(), steps: z.array(step) })
  .meta({ id: 'DnsTest' });
