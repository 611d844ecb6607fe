/** Input schemas shared by the API and the command line. */
import { z } from 'zod';
import { describeIssue } from '../base/input-issue.ts';
import { Problem } from '../base/problem.ts';
import { roles } from '../base/role.ts';
import { scopes } from '../base/scope.ts';
import {
  acmeDirectory,
  allowed,
  certName,
  challenge,
  csr,
  email,
  identifier,
  issuerName,
  keyType,
  knownIssuer,
  label,
  lifetime,
  mailbox,
  network,
  newCertName,
  profile,
  profileReference,
  scope,
  subjectField,
  timestamp,
  uri,
  usage,
  zone,
} from './input-strings.ts';
import { anyLabels, objectLabels } from './labels/label-inputs.ts';

const domains = z
  .array(identifier)
  .min(1, { error: 'at least one domain is required', abort: true })
  .max(100, 'a certificate has at most 100 domains')
  .transform((list) => [...new Set(list)]);

const uris = z
  .array(uri)
  .min(1, 'leave uris out if there are none')
  .max(20, 'a certificate has at most 20 URIs')
  .transform((list) => [...new Set(list)]);

const emails = z
  .array(mailbox)
  .min(1, 'leave emails out if there are none')
  .max(20, 'a certificate has at most 20 email addresses')
  .transform((list) => [...new Set(list)]);

export const subject = z
  .array(subjectField)
  .min(1, 'leave subject out if it has no fields')
  .refine(
    (list) => new Set(list.map((entry) => entry.split('=', 1)[0])).size === list.length,
    'a subject has each field once',
  );

export const createCertificateInput = z.strictObject({
  name: newCertName,
  domains: domains.default([]),
  issuer: knownIssuer.default('local-ca'),
  fallback_issuer: knownIssuer.optional(),
  /** By default that of the issuer; with a CSR, that of its key. */
  key_type: keyType.optional(),
  lifetime: lifetime.optional(),
  profile: profile.optional(),
  challenge: challenge.optional(),
  reuse_key: z.boolean().default(false),
  usage: usage.optional(),
  uris: uris.optional(),
  emails: emails.optional(),
  subject: subject.optional(),
  csr: csr.optional(),
  labels: objectLabels.optional().describe('labels such as team=web, by which keys and people get access'),
});

export const newCertificateName = createCertificateInput.pick({ name: true });

export type CreateCertificateInput = z.output<typeof createCertificateInput>;

/** A certificate to create; a disabled one is not issued yet. */
export type NewCertificate = CreateCertificateInput & {
  readonly auto_renew?: boolean;
  readonly disabled?: boolean;
};

/**
 * Changes to a certificate; null clears a setting. `rotate_key` schedules one new key, or cancels that. Without a CSR,
 * the vault generates the keys of the next versions.
 */
export const updateCertificateInput = z.strictObject({
  domains: domains.optional(),
  issuer: knownIssuer.optional(),
  fallback_issuer: knownIssuer.nullable().optional(),
  key_type: keyType.optional(),
  lifetime: lifetime.nullable().optional(),
  profile: profile.nullable().optional(),
  challenge: challenge.nullable().optional(),
  reuse_key: z.boolean().optional(),
  usage: usage.nullable().optional(),
  uris: uris.nullable().optional(),
  emails: emails.nullable().optional(),
  subject: subject.nullable().optional(),
  csr: csr.nullable().optional(),
  labels: objectLabels
    .optional()
    .describe('replace the labels, by which keys and people get access; needs the role admin'),
  rotate_key: z.boolean().optional(),
  auto_renew: z.boolean().optional(),
  disabled: z.boolean().optional(),
});

export type UpdateCertificateInput = z.output<typeof updateCertificateInput>;

export const createIssuerInput = z.strictObject({
  name: issuerName,
  directory_url: acmeDirectory,
  email: email.optional(),
  eab_kid: z.string().min(1).max(256).optional(),
  profile: profile.optional(),
  preferred_chain: z.string().min(1).max(256).optional(),
});

export type CreateIssuerInput = z.output<typeof createIssuerInput>;

/** Changes to an issuer; null clears a setting. */
export const updateIssuerInput = createIssuerInput.omit({ name: true }).partial().extend({
  email: email.nullable().optional(),
  eab_kid: createIssuerInput.shape.eab_kid.nullable(),
  profile: profile.nullable().optional(),
  preferred_chain: createIssuerInput.shape.preferred_chain.nullable(),
});

export type UpdateIssuerInput = z.output<typeof updateIssuerInput>;

export const createDnsProviderInput = z.strictObject({
  name: issuerName,
  type: z.string(),
  zones: z
    .array(zone)
    .min(1, 'at least one zone is required')
    .transform((list) => [...new Set(list)]),
});

export type CreateDnsProviderInput = z.output<typeof createDnsProviderInput>;

type Names = z.output<typeof allowed>[];

const allowlisted = (names: Names) => (names.includes('*') ? ('any' as const) : [...new Set(names)]);

/** An allowlist that may be empty, as after all its certificates were deleted. */
export const anyAllowlist = z.array(allowed).transform(allowlisted);

const apiKeySettings = z.strictObject({
  name: label,
  scopes: z
    .array(scope)
    .min(1, `at least one scope is required: ${scopes.join(', ')}`)
    .transform((list) => scopes.filter((known) => list.includes(known))),
  certificates: anyAllowlist.default([]),
  certificate_labels: anyLabels
    .default([])
    .describe('labels such as team=web: the key may access certificates with any of them, also later ones'),
  /** The networks the key works from; empty, or with "*", for any. */
  allowed_networks: z
    .array(network)
    .max(100, 'a key has at most 100 networks')
    .transform((list) => (list.includes('*') ? [] : [...new Set(list)]))
    .default([]),
  profiles: z
    .array(profileReference)
    .max(100, 'a key has at most 100 profiles')
    .transform((list) => [...new Set(list)])
    .default([])
    .describe(
      'profiles of private CAs, as issuer/profile: the key may have certificates issued with no others; empty for any',
    ),
  role: z
    .enum(roles)
    .nullable()
    .default(null)
    .describe('what the key may administer, as an administrator with this role may; null for nothing'),
  reach: anyLabels
    .default([])
    .describe('labels that confine what a key with the role viewer or operator may do; empty for everything'),
  labels: objectLabels.default([]).describe('labels of the key, such as team=web'),
  client_certificate: certName
    .nullable()
    .default(null)
    .describe(
      'a certificate that a private CA of the vault issues: the key works only over TLS connections with it; null for none',
    ),
  expires_at: timestamp.optional(),
});

const noAllowlist = z.object({ certificates: z.tuple([]), certificate_labels: z.tuple([]) });

export const createApiKeyInput = apiKeySettings.refine(() => false, {
  path: ['certificates'],
  error: 'at least one certificate name or label is required, or "*" for any certificate',
  // Beside errors of other fields, too.
  when: ({ value }) => noAllowlist.safeParse(value).success,
});

export type CreateApiKeyInput = z.output<typeof createApiKeyInput>;

/** Invalid parts of an input that an error lists. */
const maxIssues = 20;

/** Entries of any list in an input, more than the names that one API key needs in a large vault. */
export const maxEntries = 10_000;

/** Levels of an input; none of the schemas has more than a few. */
export const maxLevels = 50;

/**
 * Parses the value with the schema. Throws `invalid_request` that lists the invalid parts, the first twenty at most.
 */
export function parseInput<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  refuseLongLists(value);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.slice(0, maxIssues).map((issue) => ({
    path: issue.path.join('.'),
    message: describeIssue(issue, subjectOf(issue)),
  }));
  const { path, message } = errors[0] ?? { path: '', message: 'the input is not valid' };
  const isSentence = path !== '' && message.startsWith(`${path} `);
  throw new Problem('invalid_request', {
    detail: isSentence ? `${message}.` : `${path === '' ? 'Input' : path}: ${message}.`,
    errors,
  });
}

/**
 * Throws `invalid_request` if the value contains a list that is too long, or is nested too deep. A schema checks all
 * entries before the length, and describes each that is invalid.
 */
function refuseLongLists(value: unknown, path = '', depth = 0): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth > maxLevels) throw new Problem('invalid_request', { detail: 'The input is nested too deep.' });
  if (Array.isArray(value) && value.length > maxEntries) {
    const message = `${path || 'the input'} has ${value.length} entries; a list has at most ${maxEntries}`;
    throw new Problem('invalid_request', { detail: `${message}.`, errors: [{ path, message }] });
  }
  for (const [name, entry] of Object.entries(value)) {
    if (typeof entry === 'object') refuseLongLists(entry, path === '' ? name : `${path}.${name}`, depth + 1);
  }
}

/** The name of the field, also for an entry of a list. */
function subjectOf({ path }: z.core.$ZodIssue): string {
  return String(path.findLast((part) => typeof part === 'string') ?? 'the input');
}
