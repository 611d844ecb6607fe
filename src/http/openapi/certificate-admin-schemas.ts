/** Schemas of certificates and renewals for administrators. */
import { z } from 'zod';
import { certNamePattern } from '../../base/cert-name.ts';
import { usages } from '../../base/leaf-names.ts';
import { certificateOrders, statusesByUrgency } from '../../domain/certificates/certificate-search.ts';
import type { CertificateSettingsView } from '../../domain/certificates/certificate-settings.ts';
import type { RenewalDetailView } from '../../domain/certificates/certificate-views.ts';
import { type RevocationReason, revocationReasons } from '../../domain/certificates/revocation.ts';
import { desiredCertificate } from '../../domain/desired-state/desired-state.ts';
import { certName } from '../../domain/input-strings.ts';
import { updateCertificateInput } from '../../domain/inputs.ts';
import { labelFilter, objectLabels } from '../../domain/labels/label-inputs.ts';
import { certificateSchema, digits, limit, renewalSchema, time } from './schemas.ts';

export const certificatesQuery = z.strictObject({
  limit,
  after: z
    .string()
    .regex(/^(\d{1,16}:)?[^:]{0,128}$/, 'must be a certificate name or a cursor from a Link header')
    .optional()
    .describe('return entries after this name; for other sort orders, the cursor from the Link header'),
  search: z.string().max(253).optional().describe('part of the name or of a domain'),
  status: z.enum(statusesByUrgency).optional(),
  issuer: z
    .string()
    .max(64)
    .meta({ pattern: '^([A-Za-z0-9][A-Za-z0-9._-]{0,63})?$' })
    .optional()
    .describe('name of the issuer; empty for imported certificates'),
  label: labelFilter.optional(),
  sort: z.enum(certificateOrders).default('name'),
});

export const deleteCertificateQuery = z.strictObject({
  force: z
    .enum(['true', 'false'])
    .default('false')
    .describe('delete the certificate even if API keys list it, and remove it from their allowlists'),
});

export const certificateChangeSchema = z
  .strictObject({
    certificate: certificateSchema,
    renewal: z.int().nullable().describe('id of the queued renewal'),
  })
  .meta({ id: 'CertificateChange' });

export const ensureCertificateBody = desiredCertificate.extend({
  name: z.string().meta({ pattern: certNamePattern }).optional().describe('the name in the path, if given'),
});

export const ensuredCertificateSchema = z
  .strictObject({
    ...certificateChangeSchema.shape,
    changed: z.boolean().describe('false if the certificate was so already'),
  })
  .meta({ id: 'EnsuredCertificate' });

export const changeCertificateBody = updateCertificateInput.refine(
  (changes) => Object.values(changes).some((value) => value !== undefined),
  'must contain at least one setting to change',
);

export const certificateSettingsSchema = z
  .strictObject({
    name: z.string(),
    domains: z.array(z.string()),
    key_type: z.string(),
    issuer: z.string().nullable(),
    fallback_issuer: z.string().nullable(),
    lifetime: z.string().nullable().describe("such as 90d; null for the issuer's default"),
    profile: z.string().nullable(),
    challenge: z.string().nullable(),
    reuse_key: z.boolean(),
    csr: z.string().nullable().describe('PEM; null if the vault generates the keys'),
    usage: z.enum(usages),
    uris: z.array(z.string()).readonly(),
    emails: z.array(z.string()).readonly(),
    subject: z
      .array(z.string())
      .readonly()
      .describe('fields such as CN=alice; empty if it is the first domain'),
    labels: z.array(z.string()).readonly().describe('labels such as team=web, sorted'),
    public_key_pin: z.string().nullable().describe('sha256//… of the current public key'),
    next_public_key_pin: z
      .string()
      .nullable()
      .describe('the pin after the next renewal, if a key rotation is scheduled'),
    auto_renew: z.boolean(),
    disabled: z.boolean(),
    failed_attempts: z.int(),
    retry_after: time.nullable(),
    renewal_window: z
      .strictObject({ start: time, end: time })
      .nullable()
      .describe('window suggested by the CA (ARI, RFC 9773)'),
    revoked_versions: z.array(z.int()).readonly().describe('the newest 1,000 revoked versions, newest first'),
  })
  .meta({ id: 'CertificateSettings' }) satisfies z.ZodType<CertificateSettingsView>;

const reasons = Object.keys(revocationReasons) as [RevocationReason, ...RevocationReason[]];

export const revokeBody = z.strictObject({
  version: z.int().min(1).optional().describe('version to revoke; default: the current one'),
  reason: z.enum(reasons).default('unspecified'),
});

export const revokedSchema = z
  .strictObject({
    version: z.int(),
    renewal: z.int().nullable().describe('id of the renewal that replaces the revoked version'),
  })
  .meta({ id: 'Revocation' });

const file = z.union([
  z.strictObject({ name: z.string().max(256), content_base64: z.base64() }),
  z.strictObject({ name: z.string().max(256), text: z.string() }),
]);

export const importPreviewBody = z.strictObject({
  files: z
    .array(file)
    .min(1, 'must contain at least one file')
    .max(10, 'must contain at most ten files')
    .describe('certificate, chain and private key as PEM, DER or PKCS#12, in any order'),
  password: z.string().max(1024).optional().describe('password of the PKCS#12 file'),
  allow_ca: z.boolean().optional().describe('also take a CA certificate, as openssl req -x509 creates it'),
});

export const importBody = z.strictObject({
  name: certName,
  ...importPreviewBody.shape,
  labels: objectLabels.optional().describe('labels of a new certificate, such as team=web'),
  force: z.boolean().optional().describe('add a version even if the files are those of the current one'),
  allow_lost_domains: z.boolean().optional().describe('add a version that lacks domains of the current one'),
});

export type ImportFiles = Pick<z.output<typeof importPreviewBody>, 'files' | 'password' | 'allow_ca'>;

const factsSchema = z
  .strictObject({
    subject: z.string(),
    issuer: z.string(),
    serial: z.string(),
    domains: z.array(z.string()),
    key_type: z.string(),
    fingerprint_sha256: z.string(),
    not_before: time,
    not_after: time,
  })
  .meta({ id: 'CertificateFacts' });

export const importPreviewSchema = z
  .strictObject({
    certificate: factsSchema,
    chain: z.array(factsSchema).describe('from the issuing CA upwards, without the root'),
    warnings: z.array(z.string()),
    suggested_name: z.string().nullable().describe('an unused certificate name'),
  })
  .meta({ id: 'ImportPreview' });

export const importedSchema = z
  .strictObject({
    certificate: certificateSchema,
    version: z.int(),
    changed: z.boolean().describe('false if the current version holds these files already'),
    warnings: z.array(z.string()),
  })
  .meta({ id: 'ImportedCertificate' });

export const renewalDetailSchema = z
  .strictObject({
    ...renewalSchema.shape,
    issuer: z.string().nullable().describe('name of the issuer'),
    requested_by: z.string().describe('the actor, as in the audit log'),
    steps: z.array(z.strictObject({ at: time, text: z.string() })),
    held_until: time.nullable().describe('until when a queued renewal waits'),
    hold_reason: z.string().nullable().describe('why it waits; null for a rate limit of the CA'),
  })
  .meta({ id: 'RenewalDetail' }) satisfies z.ZodType<RenewalDetailView>;

const renewalsPage = {
  limit,
  after: digits(z.int().min(1)).optional().describe('return renewals older than this id'),
  status: z.enum(['queued', 'running', 'succeeded', 'failed']).optional(),
};

export const renewalsOfCertificateQuery = z.strictObject(renewalsPage);

export const renewalsQuery = z.strictObject({
  ...renewalsPage,
  certificate: z.string().max(128).meta({ pattern: certNamePattern }).optional(),
});
