/** Schemas of endpoints: what TLS servers serve. */
import { z } from 'zod';
import { certNamePattern } from '../../base/cert-name.ts';
import { endpointStates } from '../../domain/endpoints/endpoint-state.ts';
import type { EndpointView } from '../../domain/endpoints/endpoints.ts';
import { labelFilter } from '../../domain/labels/label-inputs.ts';
import { startTlsProtocols } from '../../net/starttls.ts';
import { digits, limit, time } from './schemas.ts';

export const endpointSchema = z
  .strictObject({
    id: z.int(),
    address: z.string().describe('host:port'),
    certificate: z
      .string()
      .nullable()
      .describe('the certificate that is expected; null for one that is only watched'),
    server_name: z.string().describe('for the handshake (SNI); empty for none'),
    starttls: z.enum(startTlsProtocols).nullable(),
    trust: z.enum(['auto', 'public', 'private-ca', 'bundle']),
    ca_subjects: z.array(z.string()).describe('the subjects of the certificates of a bundle'),
    interval: z.string().describe('between two checks, such as 1h'),
    state: z
      .enum(endpointStates)
      .describe(
        'unreachable: no certificate in two checks; unknown: not a version of the certificate; outdated: an older version after a day; untrusted: clients reject it; expiring: a foreign certificate expires soon',
      ),
    reason: z.string().nullable().describe('why it is not current'),
    version: z.int().nullable().describe('the version that is served; null for another certificate'),
    current_version: z.int().nullable().describe('of the certificate'),
    outdated_since: time.nullable().describe('when the vault got the version that should be served'),
    fingerprint_sha256: z.string().nullable().describe('of the certificate that was last served'),
    issuer: z.string().nullable().describe('distinguished name, RFC 4514'),
    names: z.array(z.string()),
    not_before: time.nullable(),
    not_after: time.nullable(),
    tls_version: z.string().nullable().describe('such as TLSv1.3'),
    chain_complete: z.boolean().nullable(),
    verifies: z.boolean().nullable().describe('whether clients with this trust accept it now'),
    ocsp_stapled: z.boolean().nullable(),
    error: z.string().nullable().describe('why the last check failed'),
    created_at: time,
    checked_at: time.nullable(),
    next_check_at: time,
    changed_at: time.nullable().describe('when what is served, or the outcome, last changed'),
  })
  .meta({ id: 'Endpoint' }) satisfies z.ZodType<EndpointView>;

export const endpointsQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('the cursor from the Link header'),
  state: z.enum(endpointStates).optional(),
  certificate: z
    .string()
    .max(128)
    .meta({ pattern: certNamePattern })
    .optional()
    .describe('only those of this certificate'),
  label: labelFilter.optional(),
});
