/** Input schemas shared by the API and the command line; parsed names are brands. */
import { z } from 'zod';
import { certNameRule, newCertNameRule, parseCertName, parseNewCertName } from '../base/cert-name.ts';
import { challengeTypes } from '../base/challenge-type.ts';
import { day, hour, parseDuration } from '../base/duration.ts';
import { identifierRule, isAddress, parseIdentifier } from '../base/identifier.ts';
import { describeIssue } from '../base/input-issue.ts';
import { defaultKeyType, keyTypes } from '../base/key-type.ts';
import { Problem } from '../base/problem.ts';
import { isScope, scopes } from '../base/scope.ts';
import { parseTimestamp } from '../base/timestamp.ts';
import { ipNetworkRule, parseIpNetwork } from '../net/ip-network.ts';

/** A string converted by `parse`; if that returns undefined, the message comes from `refuse`. */
export function parsed<T>(parse: (text: string) => T | undefined, refuse: (text: string) => string) {
  return z.string().transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: refuse(text) });
    return z.NEVER;
  });
}

/** A text as messages quote it. */
export const quoted = (text: string) => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

const newCertName = parsed(parseNewCertName, (text) => `${quoted(text)} is not a name: ${newCertNameRule}`);

export const certName = parsed(parseCertName, (text) => `${quoted(text)} is not a name: ${certNameRule}`);

const identifier = parsed(parseIdentifier, (text) => `${quoted(text)} is not a domain: ${identifierRule}`);

const keyType = parsed(
  (text) => keyTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a key type: use one of ${keyTypes.join(', ')}`,
);

const scope = parsed(
  (text) => (isScope(text) ? text : undefined),
  (text) => `${quoted(text)} is not a scope: use one of ${scopes.join(', ')}`,
);

const timestamp = parsed(
  parseTimestamp,
  (text) => `${quoted(text)} is not an RFC 3339 timestamp such as 2030-01-31T00:00:00Z`,
);

/** Lifetimes of issued certificates, in milliseconds. */
const shortestLifetime = hour;
const longestLifetime = 3650 * day;

const lifetime = parsed(
  (text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= shortestLifetime && ms <= longestLifetime ? ms : undefined;
  },
  (text) =>
    `${quoted(text)} is not a lifetime: write a number and m, h, d or y, from 1h to 3650d, such as 90d`,
);

// biome-ignore lint/suspicious/noControlCharactersInRegex: names shown in tables and logs must not contain them.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** The maximum length of an API key's name. */
export const longestLabel = 128;

const label = z
  .string()
  .trim()
  .min(1, 'name is missing')
  .max(longestLabel, `a name has at most ${longestLabel} characters`)
  .refine((text) => !controlCharacters.test(text), 'a name must not contain control characters');

const allowed = parsed(
  (text) => (text === '*' ? text : parseCertName(text)),
  (text) => `${quoted(text)} is not a name: ${certNameRule}`,
);

const network = parsed(
  (text) => (text === '*' ? text : parseIpNetwork(text.trim())?.text),
  (text) => `${quoted(text)} is not a network: ${ipNetworkRule}`,
);

const domains = z
  .array(identifier)
  .min(1, 'at least one domain is required')
  .max(100, 'a certificate has at most 100 domains')
  .transform((list) => [...new Set(list)]);

const challenge = parsed(
  (text) => challengeTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a challenge: use one of ${challengeTypes.join(', ')}`,
);

const profile = z.string().regex(/^[\x21-\x7e]{1,64}$/, 'a profile is one word such as shortlived');

export const createCertificateInput = z.strictObject({
  name: newCertName,
  domains,
  issuer: z.string().default('local-ca'),
  fallback_issuer: z.string().optional(),
  key_type: keyType.default(defaultKeyType),
  lifetime: lifetime.optional(),
  profile: profile.optional(),
  challenge: challenge.optional(),
  reuse_key: z.boolean().default(false),
});

export const newCertificateName = createCertificateInput.pick({ name: true });

export type CreateCertificateInput = z.output<typeof createCertificateInput>;

/** Changes to a certificate; null clears a setting. `rotate_key` schedules one new key, or cancels that. */
export const updateCertificateInput = z.strictObject({
  domains: domains.optional(),
  issuer: z.string().optional(),
  fallback_issuer: z.string().nullable().optional(),
  key_type: keyType.optional(),
  lifetime: lifetime.nullable().optional(),
  profile: profile.nullable().optional(),
  challenge: challenge.nullable().optional(),
  reuse_key: z.boolean().optional(),
  rotate_key: z.boolean().optional(),
  auto_renew: z.boolean().optional(),
  disabled: z.boolean().optional(),
});

export type UpdateCertificateInput = z.output<typeof updateCertificateInput>;

const acmeDirectory = parsed(
  (text) => {
    const url = URL.parse(text);
    return url !== null && /^https?:$/.test(url.protocol) && url.username === '' ? url.href : undefined;
  },
  (text) => `${quoted(text)} is not a directory URL such as https://ca.example/acme/directory`,
);

const email = z.string().regex(/^[^\s@,?]+@[^\s@,?]+$/, 'not an email address');

export const issuerName = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'a name has up to 64 letters, digits, dots, dashes and underscores',
  );

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

const zone = parsed(
  (text) => {
    const found = parseIdentifier(text);
    return found === undefined || isAddress(found) || found.startsWith('*.') ? undefined : found;
  },
  (text) => `${quoted(text)} is not a zone such as example.com`,
);

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

export const createApiKeyInput = z.strictObject({
  name: label,
  scopes: z
    .array(scope)
    .min(1, `at least one scope is required: ${scopes.join(', ')}`)
    .transform((list) => scopes.filter((known) => list.includes(known))),
  certificates: z
    .array(allowed)
    .min(1, 'at least one certificate name is required, or "*" for any certificate')
    .transform(allowlisted),
  /** The networks the key works from; empty, or with "*", for any. */
  allowed_networks: z
    .array(network)
    .max(100, 'a key has at most 100 networks')
    .transform((list) => (list.includes('*') ? [] : [...new Set(list)]))
    .default([]),
  expires_at: timestamp.optional(),
});

export type CreateApiKeyInput = z.output<typeof createApiKeyInput>;

/** Parses the value with the schema. Throws `invalid_request` that lists all invalid parts. */
export function parseInput<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map((issue) => ({
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

/** The name of the field, also for an entry of a list. */
function subjectOf({ path }: z.core.$ZodIssue): string {
  return String(path.findLast((part) => typeof part === 'string') ?? 'the input');
}
