/** Schemas of the API's bodies and queries, for the OpenAPI document and for validation. */
import { z } from 'zod';
import { keyTypes } from '../../base/key-type.ts';
import { problemCodes } from '../../base/problem.ts';
import { scopes } from '../../base/scope.ts';
import { keystoreEncryptions } from '../../crypto/bundles/pkcs12-writer.ts';
import type { AcmeAccountView } from '../../domain/acme-accounts/acme-accounts.ts';
import { certificateStatuses } from '../../domain/certificates/certificate-status.ts';
import type {
  CertificateView,
  RenewalView,
  VersionView,
} from '../../domain/certificates/certificate-views.ts';
import type { Readiness } from '../../domain/doctor/readiness.ts';
import { artifactNames } from '../../domain/versions/artifacts.ts';

export const time = z.iso.datetime().describe('RFC 3339, UTC with Z');

export const problemSchema = z
  .strictObject({
    status: z.int(),
    code: z.enum(problemCodes),
    detail: z.string(),
    errors: z.array(z.strictObject({ path: z.string(), message: z.string() })).optional(),
    command_line: z
      .strictObject({ lines: z.array(z.string()).readonly(), hint: z.string().optional() })
      .readonly()
      .optional()
      .describe('what the command line prints, for requests with the header `Prefer: errors=command-line`'),
  })
  .meta({ id: 'Problem', description: 'What went wrong and how to fix it.' });

const keyTypeOrOther = z
  .string()
  .describe(`${keyTypes.join(', ')}; imported keys may have other types, such as rsa1024 or ec521`);

const keyHolder = z.enum(['vault', 'client']);

export const versionSchema = z
  .strictObject({
    version: z.int().min(1),
    serial: z.string().describe('hexadecimal'),
    issuer: z.string().describe('distinguished name, RFC 4514'),
    subject: z.string().describe('distinguished name, RFC 4514'),
    domains: z.array(z.string()),
    key_type: keyTypeOrOther,
    fingerprint_sha256: z.string().regex(/^[0-9a-f]{64}$/),
    not_before: time,
    not_after: time,
    created_at: time,
    source: z.enum(['acme', 'local-ca', 'import']),
    key_holder: keyHolder.describe('who holds the private key'),
    current: z.boolean(),
  })
  .meta({ id: 'Version' }) satisfies z.ZodType<VersionView>;

const artifactSchema = z
  .strictObject({ file: z.enum(artifactNames), scope: z.enum(scopes), url: z.string(), etag: z.string() })
  .meta({ id: 'Artifact' });

export const certificateSchema = z
  .strictObject({
    name: z.string(),
    domains: z.array(z.string()),
    uris: z.array(z.string()).describe('URIs such as SPIFFE IDs, from the private CA'),
    emails: z.array(z.string()).describe('email addresses, from the private CA'),
    labels: z.array(z.string()).describe('labels such as team=web, sorted'),
    key_type: keyTypeOrOther,
    issuer: z.string().nullable().describe('name of the issuer; null for imported certificates'),
    owner: z
      .strictObject({ type: z.literal('acme-client'), id: z.int(), name: z.string() })
      .nullable()
      .describe('the ACME client that orders and renews it; null for certificates of the vault'),
    status: z.enum(certificateStatuses),
    auto_renew: z.boolean(),
    key_holder: keyHolder.describe('who holds the private keys of the next versions'),
    created_at: time,
    current_version: versionSchema.nullable(),
    renewal: z.strictObject({
      next_at: time.nullable(),
      last_error: z.string().nullable(),
      last_attempt_at: time.nullable(),
    }),
    artifacts: z.array(artifactSchema),
  })
  .meta({ id: 'Certificate' }) satisfies z.ZodType<CertificateView>;

export const queuedRenewalSchema = z
  .strictObject({
    id: z.int(),
    certificate: z.string(),
    status: z.enum(['queued', 'running']),
    requested_at: time,
  })
  .meta({ id: 'QueuedRenewal' });

export const renewalSchema = z
  .strictObject({
    id: z.int(),
    certificate: z.string(),
    status: z.enum(['queued', 'running', 'succeeded', 'failed']),
    requested_at: time,
    started_at: time.nullable(),
    finished_at: time.nullable(),
    version: z.int().nullable().describe('the version that the renewal created'),
    error: z.string().nullable(),
  })
  .meta({ id: 'Renewal' }) satisfies z.ZodType<RenewalView>;

export const acmeAccountSchema = z
  .strictObject({
    id: z.string().regex(/^[1-9]\d*$/),
    issuer: z
      .string()
      .describe('issuers that use the account, separated by commas; otherwise the issuer that registered it'),
    directory_url: z.string(),
    email: z.string().nullable(),
    status: z.enum(['registering', 'valid', 'deactivated', 'gone']),
    current: z.boolean().describe('whether an issuer uses the account'),
    created_at: time,
  })
  .meta({ id: 'AcmeAccount' }) satisfies z.ZodType<AcmeAccountView>;

export const healthSchema = z
  .strictObject({ status: z.literal('ok'), version: z.string() })
  .meta({ id: 'Health' });

const check = z.enum(['ok', 'failed']);

export const readinessSchema = z
  .strictObject({
    status: z.enum(['ready', 'not_ready']),
    checks: z.strictObject({ database: check, master_key: check, renewal_engine: check }),
    details: z.strictObject({
      backup: z.strictObject({
        state: z
          .enum(['none', 'ok', 'failed'])
          .describe('failed: the last scheduled backup failed; see the log'),
        age_seconds: z.int().min(0).nullable().describe('null if there is none'),
      }),
      disk: z.strictObject({
        state: z
          .enum(['ok', 'low', 'critical'])
          .describe(
            'low: below --low-disk-space; critical: below a quarter of it, rejected requests are counted, not recorded',
          ),
      }),
    }),
  })
  .meta({ id: 'Readiness' }) satisfies z.ZodType<Readiness>;

/** A whole number in a query, written only with digits. */
export function digits(number: z.ZodInt) {
  return z.preprocess((text) => (/^\d{1,16}$/.test(String(text)) ? Number(text) : text), number);
}

export const limit = digits(z.int().min(1).max(1000))
  .default(1000)
  .describe('maximum number of entries to return');

/** No parameters: misspelled or misplaced ones must be rejected. */
export const noQuery = z.strictObject({});

export const versionsQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('return versions older than this one'),
});

export const acmeAccountsQuery = z.strictObject({
  limit,
  after: digits(z.int().min(1)).optional().describe('return entries after this id'),
});

/** Seconds; load balancers and NAT forget connections that are silent for longer. */
const maxWait = 300;

export const artifactQuery = z.strictObject({
  version: digits(z.int().min(1)).optional().describe('version to download; default: the current one'),
  wait: digits(z.int().min(0).max(maxWait))
    .optional()
    .describe(
      'seconds to wait for a new version if the entity tag in If-None-Match is the current one; without effect if `version` is given',
    ),
});

export const keystoreQuery = artifactQuery.extend({
  encryption: z
    .enum(keystoreEncryptions)
    .optional()
    .describe(
      'of the keystore: `aes256` (default), or `legacy` for programs that read only triple DES and SHA-1',
    ),
});

export const typeSettings = z
  .record(z.string(), z.unknown())
  .describe('settings and credentials; see the JSON Schema of the type');

export const newTypeSettings = typeSettings
  .optional()
  .describe('replaces all settings, including credentials; omit to keep them');

/** A type of channel or deploy target; `add` is the command that adds one. */
export const settingsType = (add: string) =>
  z.strictObject({
    type: z.string(),
    title: z.string(),
    settings: z.looseObject({}).describe('JSON Schema of the settings and credentials'),
    command_line_only: z.boolean().describe(`runs a local program; can only be added with "${add}"`),
  });
