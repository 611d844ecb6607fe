/** Schemas of scans: searches of networks for TLS servers. */
import { z } from 'zod';
import type { FindingView, WholeFinding } from '../../domain/scans/findings.ts';
import type { ScanView } from '../../domain/scans/scans.ts';
import { startTlsProtocols } from '../../net/starttls.ts';
import { digits, limit, time } from './schemas.ts';

export const scanSchema = z
  .strictObject({
    id: z.int(),
    networks: z.array(z.string()),
    ports: z.array(z.int()),
    rate: z.int().describe('connections per second'),
    interval: z.string().nullable().describe('between two runs, such as 7d; null for a scan that runs once'),
    state: z.enum(['waiting', 'running', 'finished']),
    done: z.int().describe('addresses and ports of the latest run that are done'),
    total: z.int().describe('addresses and ports of a run'),
    found: z.int().describe('TLS servers'),
    created_at: time,
    started_at: time.nullable().describe('when the latest run began'),
    finished_at: time.nullable().describe('when the latest run ended; null while it runs'),
    next_run_at: time.nullable(),
  })
  .meta({ id: 'Scan' }) satisfies z.ZodType<ScanView>;

const finding = z.strictObject({
  id: z.int(),
  address: z.string().describe('address:port'),
  starttls: z.enum(startTlsProtocols).nullable(),
  certificate: z
    .string()
    .nullable()
    .describe('the certificate of the vault that is served there; null for one that the vault does not have'),
  version: z.int().nullable(),
  fingerprint_sha256: z.string(),
  issuer: z.string().describe('distinguished name, RFC 4514'),
  names: z.array(z.string()),
  not_before: time,
  not_after: time,
  endpoint: z.boolean().describe('whether there is an endpoint at this address'),
  scan: z.int().describe('the id of the scan that saw it last'),
  first_seen_at: time,
  seen_at: time,
});

export const findingSchema = finding.meta({ id: 'Finding' }) satisfies z.ZodType<FindingView>;

export const wholeFindingSchema = z
  .strictObject({
    ...finding.shape,
    chain_pem: z
      .string()
      .describe('the certificates that the server sent, in PEM; empty if they were too large'),
  })
  .meta({ id: 'WholeFinding' }) satisfies z.ZodType<WholeFinding>;

export const findingsQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('the cursor from the Link header'),
  scan: digits(z.int().min(1)).optional().describe('only what this scan saw last'),
  known: z
    .enum(['true', 'false'])
    .optional()
    .describe('true: only certificates that the vault has; false: only others'),
});
