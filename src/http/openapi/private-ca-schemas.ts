/** Schemas of private CAs, for administrators: their CA certificates and profiles. */
import { z } from 'zod';
import { keyTypes } from '../../base/key-type.ts';
import { usages } from '../../base/leaf-names.ts';
import type { ProfileView } from '../../domain/issuers/issuer-profiles.ts';
import type { CaCertificateView } from '../../domain/private-ca/ca-views.ts';
import { nameTypes } from '../../domain/private-ca/profile-settings.ts';
import { time } from './schemas.ts';

const caCertificateSchema = z.strictObject({
  role: z.enum(['root', 'intermediate']),
  state: z
    .enum(['current', 'former', 'retired'])
    .describe('current: it issues; former: what it issued is still valid; retired: nothing needs it'),
  subject: z.string(),
  fingerprint_sha256: z.string(),
  key: z
    .enum(['vault', 'exported', 'company'])
    .describe('where its key is: in the vault, in a file, or at the company that the root belongs to'),
  not_before: time,
  not_after: time,
  needed_until: time.nullable().describe('when the last certificate under it expires; null if there is none'),
  pem: z.string(),
});

export const privateCaCertificatesSchema = z
  .array(caCertificateSchema)
  .describe('the roots, each with its intermediates after it; those in use come first')
  .meta({ id: 'CaCertificates' }) satisfies z.ZodType<CaCertificateView[]>;

export const rotationSchema = z
  .strictObject({
    former_root_until: time.describe(
      'clients trust the former root until then, for what was issued under it',
    ),
    renewals: z.int().describe('renewals that were queued, over a day'),
    certificates: privateCaCertificatesSchema,
  })
  .meta({ id: 'CaRotation' });

export const caRequestSchema = z
  .strictObject({
    csr: z.string().describe('PKCS#10 as PEM'),
    created_at: time,
  })
  .meta({ id: 'CaRequest' });

export const caImportSchema = z
  .strictObject({
    issues_until: time.describe('nothing that is issued is valid for longer'),
    former_root_until: time
      .nullable()
      .describe(
        'clients trust the former root until then, for what was issued under it; null if the root is the same',
      ),
    renewals: z.int().describe('renewals that were queued, over a day'),
    certificates: privateCaCertificatesSchema,
  })
  .meta({ id: 'CaImport' });

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
