/** Strings of the API and the command line: each is parsed into its brand, and says in JSON Schema what it accepts. */
import { z } from 'zod';
import {
  certNamePattern,
  certNameRule,
  newCertNamePattern,
  newCertNameRule,
  parseCertName,
  parseNewCertName,
} from '../base/cert-name.ts';
import { challengeTypes } from '../base/challenge-type.ts';
import { day, durationPattern, minute, parseDuration } from '../base/duration.ts';
import { identifierPattern, identifierRule, isAddress, parseIdentifier } from '../base/identifier.ts';
import { keyTypes } from '../base/key-type.ts';
import { asciiRule } from '../base/label.ts';
import {
  emailRule,
  parseEmail,
  parseSubjectField,
  parseUri,
  subjectRule,
  uriRule,
  usages,
} from '../base/leaf-names.ts';
import { momentForms, parseMoment } from '../base/moment.ts';
import { isScope, scopes } from '../base/scope.ts';
import { parseTimestamp } from '../base/timestamp.ts';
import { RequestRefused } from '../crypto/x509/request-refused.ts';
import { maxRequestSize, readSigningRequest } from '../crypto/x509/signing-request.ts';
import { ipNetworkPattern, ipNetworkRule, parseIpNetwork } from '../net/ip-network.ts';

/** What a JSON Schema says about a string, for generated clients. */
type Published =
  | { readonly pattern: string }
  | { readonly enum: readonly string[] }
  | { readonly format: string }
  | Record<never, never>;

/**
 * A string converted by `parse`; if that returns undefined, the message comes from `refuse`. `published` accepts every
 * string that `parse` accepts, and as few others as a pattern can tell apart.
 */
export function parsed<T>(
  parse: (text: string) => T | undefined,
  refuse: (text: string) => string,
  published: Published,
) {
  return z
    .string()
    .meta(published)
    .transform((text, context) => {
      const value = parse(text);
      if (value !== undefined) return value;
      context.addIssue({ code: 'custom', message: refuse(text) });
      return z.NEVER;
    });
}

/** A text as messages quote it. */
export const quoted = (text: string) => JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);

export const newCertName = parsed(
  parseNewCertName,
  (text) => `${quoted(text)} is not a name: ${newCertNameRule}`,
  { pattern: newCertNamePattern },
);

export const certName = parsed(parseCertName, (text) => `${quoted(text)} is not a name: ${certNameRule}`, {
  pattern: certNamePattern,
});

export const identifier = parsed(
  parseIdentifier,
  (text) => `${quoted(text)} is not a domain: ${identifierRule}`,
  { pattern: identifierPattern },
);

export const keyType = parsed(
  (text) => keyTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a key type: use one of ${keyTypes.join(', ')}`,
  { enum: keyTypes },
);

export const scope = parsed(
  (text) => (isScope(text) ? text : undefined),
  (text) => `${quoted(text)} is not a scope: use one of ${scopes.join(', ')}`,
  { enum: scopes },
);

export const timestamp = parsed(
  parseTimestamp,
  (text) => `${quoted(text)} is not an RFC 3339 timestamp such as 2030-01-31T00:00:00Z`,
  { format: 'date-time' },
);

/** A moment in the future as people write it in options of commands; the API takes timestamps only. */
export function futureMoment(now: number) {
  return parsed(
    (text) => parseMoment(text, now, 'ahead'),
    (text) => `${quoted(text)} is not a time: use ${momentForms}`,
    {},
  );
}

/** Lifetimes of issued certificates, in milliseconds. */
const shortestLifetime = 5 * minute;
const longestLifetime = 3650 * day;

export const lifetime = parsed(
  (text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= shortestLifetime && ms <= longestLifetime ? ms : undefined;
  },
  (text) =>
    `${quoted(text)} is not a lifetime: write a number and m, h, d or y, from 5m to 3650d, such as 90d`,
  { pattern: durationPattern },
);

// biome-ignore lint/suspicious/noControlCharactersInRegex: names shown in tables and logs must not contain them.
export const controlCharacters = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;

/** The maximum length of an API key's name. */
export const maxLabelLength = 128;

export const label = z
  .string()
  .trim()
  .min(1, 'name is missing')
  .max(maxLabelLength, `a name has at most ${maxLabelLength} characters`)
  .refine((text) => !controlCharacters.test(text), 'a name must not contain control characters')
  .meta({ pattern: '^[^\\x00-\\x1f\\x7f-\\x9f]*$' });

export const allowed = parsed(
  (text) => (text === '*' ? text : parseCertName(text)),
  (text) => `${quoted(text)} is not a name: ${certNameRule}`,
  { pattern: '^[A-Za-z0-9*_-][A-Za-z0-9*._-]{0,127}$' },
);

export const network = parsed(
  (text) => (text === '*' ? text : parseIpNetwork(text.trim())?.text),
  (text) => `${quoted(text)} is not a network: ${ipNetworkRule}`,
  { pattern: ipNetworkPattern },
);

export const challenge = parsed(
  (text) => challengeTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a challenge: use one of ${challengeTypes.join(', ')}`,
  { enum: challengeTypes },
);

export const profile = z.string().regex(/^[\x21-\x7e]{1,64}$/, 'a profile is one word such as shortlived');

/** A name of ASCII characters; the error specifies the first other one, which may look like one of them. */
export function asciiName(pattern: RegExp, rule: string) {
  return z.string().regex(pattern, { error: ({ input }) => asciiRule(String(input), rule) });
}

const resourceName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** Names of issuers, DNS providers and notification channels, as JSON Schema says it. */
export const issuerNamePattern = resourceName.source;

/** The name of an issuer that exists; an unknown one has its own problem. */
export const knownIssuer = z.string().meta({ pattern: issuerNamePattern });

export const issuerName = asciiName(
  resourceName,
  'a name has up to 64 letters, digits, dots, dashes and underscores',
);

export const profileName = asciiName(
  resourceName,
  'a name of a profile has up to 64 letters, digits, dots, dashes and underscores',
);

/** A profile of a private CA beside the name of the CA. */
export const profileReference = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\/[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'write a profile with its issuer, such as local-ca/web',
  );

export const acmeDirectory = parsed(
  (text) => {
    const url = URL.parse(text);
    return url !== null && /^https?:$/.test(url.protocol) && url.username === '' ? url.href : undefined;
  },
  (text) => `${quoted(text)} is not a directory URL such as https://ca.example/acme/directory`,
  { pattern: '^[Hh][Tt][Tt][Pp][Ss]?:' },
);

export const email = z.string().regex(/^[^\s@,?]+@[^\s@,?]+$/, 'not an email address');

export const usage = parsed(
  (text) => usages.find((known) => known === text),
  (text) => `${quoted(text)} is not a usage: use one of ${usages.join(', ')}`,
  { enum: usages },
);

export const uri = parsed(parseUri, (text) => `${quoted(text)} is not a URI: ${uriRule}`, {
  pattern: '^[A-Za-z][A-Za-z0-9+.-]*:',
});

/** An email address in a certificate. */
export const mailbox = parsed(parseEmail, (text) => `${quoted(text)} is not an email address: ${emailRule}`, {
  pattern: '@',
});

export const subjectField = parsed(
  (text) => {
    const found = parseSubjectField(text);
    return found && `${found.field}=${found.value}`;
  },
  (text) => `${quoted(text)} is not a field of a subject: ${subjectRule}`,
  { pattern: '=' },
);

/** A certificate signing request, as PEM in the strict form. */
export const csr = z
  .string()
  .max(maxRequestSize, 'csr is larger than 64 KiB')
  .meta({ pattern: '-----BEGIN (NEW )?CERTIFICATE REQUEST-----' })
  .describe('a certificate signing request (PKCS#10) as PEM; the client keeps the private key')
  .transform((text, context) => {
    try {
      return readSigningRequest(text).pem;
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      context.addIssue({ code: 'custom', message: `csr ${error.message}` });
      return z.NEVER;
    }
  });

export const zone = parsed(
  (text) => {
    const found = parseIdentifier(text);
    return found === undefined || isAddress(found) || found.startsWith('*.') ? undefined : found;
  },
  (text) => `${quoted(text)} is not a zone such as example.com`,
  { pattern: identifierPattern },
);
