/** Schemas of the CA certificates of private CAs, for administrators. */
import { z } from 'zod';
import type { CaCertificateView } from '../../domain/private-ca/ca-views.ts';
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
