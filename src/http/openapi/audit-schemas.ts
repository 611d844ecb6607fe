/** Schemas of the audit log and of the information about the vault. */
import { z } from 'zod';
import { parseTimestamp } from '../../base/timestamp.ts';
import { type AuditEventView, auditFormats } from '../../domain/audit/audit-log.ts';
import { digits, limit, readinessSchema, time } from './schemas.ts';

const moment = z
  .string()
  .refine(
    (text) => parseTimestamp(text) !== undefined,
    'must be an RFC 3339 timestamp such as 2030-01-31T00:00:00Z',
  )
  .meta({ format: 'date-time' });

const auditFilter = {
  actor: z.string().max(256).optional().describe('such as admin:alice'),
  action: z.string().max(64).optional().describe('such as certificate.download'),
  resource: z.string().max(300).optional().describe('such as certificate:www'),
  since: moment.optional().describe('RFC 3339; events at this moment or later'),
  until: moment.optional().describe('RFC 3339; events at this moment or earlier'),
};

export const auditQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('return events older than this id'),
  ...auditFilter,
});

export const auditExportQuery = z.strictObject({
  format: z.enum(auditFormats).default('csv'),
  ...auditFilter,
});

export const auditEventSchema = z
  .strictObject({
    id: z.int(),
    at: time,
    actor: z.string(),
    action: z.string(),
    resource: z.string(),
    detail: z.looseObject({}),
    ip: z.string().nullable(),
    request_id: z.string().nullable(),
  })
  .meta({ id: 'AuditEvent' }) satisfies z.ZodType<AuditEventView>;

const counts = z.int().min(0);

export const aboutSchema = z
  .strictObject({
    version: z.string(),
    ...readinessSchema.shape,
    counts: z.strictObject({
      certificates: z.strictObject({
        expired: counts,
        not_yet_valid: counts,
        expiring: counts,
        pending: counts,
        valid: counts,
        disabled: counts,
      }),
      api_keys: counts,
      issuers: counts,
      dns_providers: counts,
      acme_accounts: counts,
    }),
    backup: z.strictObject({
      last_at: time.nullable().describe('contents of the last backup; null if there is none'),
    }),
    tls: z
      .strictObject({
        source: z.enum(['certificate', 'files']),
        certificate: z.string().nullable(),
        publicly_trusted: z.boolean(),
        pin: z.string().regex(/^sha256\/\/[A-Za-z0-9+/]{43}=$/),
      })
      .nullable()
      .meta({ description: "the vault's own HTTPS certificate; null if it serves plain HTTP" }),
  })
  .meta({ id: 'About' });
