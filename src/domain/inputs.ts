/** What people and programs may ask for, checked in one place for every way in; types come out as brands. */
import { z } from 'zod';
import { certNameRule, parseCertName } from '../base/cert-name.ts';
import { day, hour, parseDuration } from '../base/duration.ts';
import { identifierRule, parseIdentifier } from '../base/identifier.ts';
import { defaultKeyType, keyTypes } from '../base/key-type.ts';
import { Problem } from '../base/problem.ts';
import { isScope, scopes } from '../base/scope.ts';
import { parseTimestamp } from '../base/timestamp.ts';

/** A string that `parse` turns into something better, or a message built by `refuse`. */
function parsed<T>(parse: (text: string) => T | undefined, refuse: (text: string) => string) {
  return z.string().transform((text, context) => {
    const value = parse(text);
    if (value !== undefined) return value;
    context.addIssue({ code: 'custom', message: refuse(text) });
    return z.NEVER;
  });
}

const quoted = (text: string) => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

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
  (text) => `${quoted(text)} is not a lifetime: write a number and h, d or y, from 1h to 3650d, such as 90d`,
);

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a name shown in tables and logs must not have.
const controlCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

const label = z
  .string()
  .trim()
  .min(1, 'a name is needed')
  .max(128, 'a name has at most 128 characters')
  .refine((text) => !controlCharacters.test(text), 'a name has no control characters');

const allowed = parsed(
  (text) => (text === '*' ? text : parseCertName(text)),
  (text) => `${quoted(text)} is not a name: ${certNameRule}`,
);

export const createCertificateInput = z.strictObject({
  name: certName,
  domains: z
    .array(identifier)
    .min(1, 'at least one domain is needed')
    .max(100, 'a certificate has at most 100 domains')
    .transform((domains) => [...new Set(domains)]),
  issuer: z.string().default('local-ca'),
  key_type: keyType.default(defaultKeyType),
  lifetime: lifetime.optional(),
  reuse_key: z.boolean().default(false),
});

export type CreateCertificateInput = z.output<typeof createCertificateInput>;

export const createApiKeyInput = z.strictObject({
  name: label,
  scopes: z
    .array(scope)
    .min(1, `at least one scope is needed: ${scopes.join(', ')}`)
    .transform((list) => scopes.filter((known) => list.includes(known))),
  certificates: z
    .array(allowed)
    .min(1, 'at least one certificate name is needed, or "*" for any certificate')
    .transform((names) => (names.includes('*') ? ('any' as const) : [...new Set(names)])),
  expires_at: timestamp.optional(),
});

export type CreateApiKeyInput = z.output<typeof createApiKeyInput>;

/** What the schema makes of the value. Throws `invalid_request` that names every part it refuses. */
export function parseInput<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const errors = result.error.issues.map(({ path, message }) => ({ path: path.join('.'), message }));
  const first = errors[0] ?? { path: '', message: 'it is not valid' };
  throw new Problem('invalid_request', {
    detail: `${first.path === '' ? 'Input' : first.path}: ${first.message}.`,
    errors,
  });
}
