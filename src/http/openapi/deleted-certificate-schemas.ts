/** Schemas of deleted certificates for administrators. */
import { z } from 'zod';
import type { DeletedCertificateView } from '../../domain/certificates/deleted-certificate-views.ts';
import { newCertificateName } from '../../domain/inputs.ts';
import { certificateSchema, time } from './schemas.ts';

const namedKeys = z
  .array(z.strictObject({ id: z.int(), name: z.string() }))
  .describe('API keys that listed the certificate; restoring it does not add it to their allowlists');

export const deletedCertificateSchema = z
  .strictObject({
    id: z.int(),
    name: z.string(),
    domains: z.array(z.string()),
    issuer: z.string().nullable(),
    deleted_at: time,
    deleted_by: z.string().describe('the actor, as in the audit log'),
    api_keys: namedKeys,
    purge_at: time.describe('when it is destroyed with its keys'),
  })
  .meta({ id: 'DeletedCertificate' }) satisfies z.ZodType<DeletedCertificateView>;

export const restoreBody = newCertificateName
  .partial()
  .describe('a new name, if another certificate has the old one');

export const restoredSchema = z
  .strictObject({
    certificate: certificateSchema,
    lost_issuer: z.string().nullable().describe('the former issuer, if it was removed since; choose another'),
    api_keys: namedKeys,
    labels: z.array(z.string()).describe('labels that it had; restoring it does not set them'),
  })
  .meta({ id: 'RestoredCertificate' });

/** The id in a path; 0, which no certificate has, if it is not one. */
export function deletedIdParameter(text = ''): number {
  return /^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0;
}
