/** Schemas of emergency replacements. */
import { z } from 'zod';
import { replacementReasons } from '../../domain/replacements/replacement-inputs.ts';
import {
  type AffectedCertificateView,
  mostShown,
  type PreviewView,
} from '../../domain/replacements/replacement-preview.ts';
import {
  certificateStates,
  type ReplacedCertificateView,
  type ReplacementView,
  replacementStates,
} from '../../domain/replacements/replacement-views.ts';
import { digits, limit, time } from './schemas.ts';

const count = z.int();

export const replacementSchema = z
  .strictObject({
    id: z.int(),
    state: z.enum(replacementStates).describe('finished: nothing more is done, even if some failed'),
    reason: z.enum(replacementReasons),
    issuer: z.string().nullable().describe('the issuer that selected the certificates'),
    labels: z.array(z.string()).describe('the labels that selected the certificates'),
    certificate: z.string().nullable().describe('the one certificate that was selected'),
    created_by: z.string().describe('as in the audit log'),
    created_at: time,
    deadline_at: time.describe('from then on, old versions are revoked as soon as new ones are issued'),
    finished_at: time.nullable(),
    canceled_by: z.string().nullable().describe('as in the audit log'),
    certificates: z
      .strictObject({
        waiting: count,
        renewing: count,
        issued: count,
        live: count,
        revoked: count,
        failed: count,
        canceled: count,
      })
      .describe('how many certificates are in each state'),
  })
  .meta({ id: 'Replacement' }) satisfies z.ZodType<ReplacementView>;

export const replacedCertificateSchema = z
  .strictObject({
    certificate: z.string(),
    state: z
      .enum(certificateStates)
      .describe(
        'issued: the new version is not yet live everywhere; live: the old version is revoked next; failed: the last attempt failed',
      ),
    old_version: z.int(),
    new_version: z.int().nullable(),
    live: z.int().describe('deployments and endpoints with the new version'),
    places: z.int().describe('all deployments and endpoints that are known, without silent ones'),
    error: z.string().nullable().describe('why the last attempt failed'),
    finished: z.boolean().describe('whether nothing more is done about it'),
    changed_at: time,
  })
  .meta({ id: 'ReplacedCertificate' }) satisfies z.ZodType<ReplacedCertificateView>;

const affectedCertificate = z
  .strictObject({
    certificate: z.string(),
    version: z.int().describe('the version that would be revoked'),
    serial: z.string(),
    not_after: time,
    obstacle: z.string().nullable().describe('why the vault cannot replace it; null if it can'),
    hosts: z.array(z.string()).describe('hosts that reported it, up to 100'),
    endpoints: z.array(z.string()).describe('endpoints that are expected to serve it, up to 100'),
    api_keys: z.array(z.string()).describe('active API keys that may read it, up to 100'),
  })
  .meta({ id: 'AffectedCertificate' }) satisfies z.ZodType<AffectedCertificateView>;

export const previewSchema = z
  .strictObject({
    replaced: z.int().describe('how many certificates the vault would replace'),
    obstructed: z.int().describe('how many certificates require action'),
    certificates: z.array(affectedCertificate).describe(`up to ${mostShown}`),
  })
  .meta({ id: 'ReplacementPreview' }) satisfies z.ZodType<PreviewView>;

export const replacementsQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('the cursor from the Link header'),
});

export const replacedCertificatesQuery = replacementsQuery.extend({
  state: z.enum(certificateStates).optional(),
});
