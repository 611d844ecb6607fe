/** Input schemas of ACME clients, shared by the API, the command line and the desired state. */
import { z } from 'zod';
import {
  knownIssuer,
  label,
  network,
  parsed,
  profileReference,
  quoted,
  timestamp,
} from '../../input-strings.ts';
import { objectLabels } from '../../labels/label-inputs.ts';
import { type NamePattern, namePatternPattern, parseNamePattern } from './name-patterns.ts';

/** The challenge types by which the vault validates names for an ACME client. */
export const validationTypes = ['http-01', 'tls-alpn-01', 'dns-01'] as const;

export type ValidationType = (typeof validationTypes)[number];

/** The most patterns of a client. */
const maxPatterns = 1000;

const namePattern = z
  .string()
  .meta({ pattern: namePatternPattern })
  .transform((text, context): NamePattern => {
    const read = parseNamePattern(text);
    if ('pattern' in read) return read.pattern;
    context.addIssue({ code: 'custom', message: `${quoted(text)} ${read.refusal}` });
    return z.NEVER;
  });

const validationType = parsed(
  (text) => validationTypes.find((type) => type === text),
  (text) => `${quoted(text)} is not a validation: use ${validationTypes.join(', ')}, or none`,
  { enum: validationTypes },
);

const domains = z
  .array(namePattern)
  .min(1, { error: 'at least one pattern of names is required, such as "*.example.com"', abort: true })
  .max(maxPatterns, `an ACME client has at most ${maxPatterns} patterns`)
  .transform((list) => [...new Set(list)])
  .describe(
    'the names it may order: www.example.com, *.example.com for all below example.com, * for any DNS name, or an IP network',
  );

const issuers = z
  .array(knownIssuer)
  .min(1, { error: 'at least one issuer is required', abort: true })
  .max(100, 'an ACME client has at most 100 issuers')
  .transform((list) => [...new Set(list)])
  .describe('the issuers it may use, each with a directory of its own');

const profiles = z
  .array(profileReference)
  .max(100, 'an ACME client has at most 100 profiles')
  .transform((list) => [...new Set(list)])
  .describe('the profiles of private CAs it may use, as issuer/profile; empty for any');

const allowedNetworks = z
  .array(network)
  .max(100, 'an ACME client has at most 100 networks')
  .transform((list) => (list.includes('*') ? [] : [...new Set(list)]))
  .describe('the networks it may connect from; empty, or with "*", for any');

const validation = z
  .array(validationType)
  .transform((list) => validationTypes.filter((type) => list.includes(type)))
  .describe('the challenges by which the vault validates its names; empty trusts the binding');

const rate = z
  .int()
  .min(1, 'a rate is at least 1 order per hour')
  .max(1_000_000, 'a rate is at most 1000000 orders per hour; null for no limit')
  .nullable()
  .describe('new orders per hour; null for no limit');

export const createAcmeClientInput = z.strictObject({
  name: label,
  domains,
  issuers: issuers.prefault(['local-ca']),
  profiles: profiles.default([]),
  allowed_networks: allowedNetworks.default([]),
  validation: validation.default([]),
  /** By default none for private CAs, and `gatewayRate` if one of the issuers is a public CA. */
  rate: rate.optional(),
  expires_at: timestamp.optional(),
  labels: objectLabels.default([]).describe('labels of the client, such as team=web'),
});

export type CreateAcmeClientInput = z.output<typeof createAcmeClientInput>;

/** Changes to an ACME client; lists replace the current ones, and null clears the rate or the expiry. */
export const updateAcmeClientInput = z.strictObject({
  name: label.optional(),
  domains: domains.optional(),
  issuers: issuers.optional(),
  profiles: profiles.optional(),
  allowed_networks: allowedNetworks.optional(),
  validation: validation.optional(),
  rate: rate.optional(),
  expires_at: timestamp.nullable().optional(),
  labels: objectLabels.optional(),
});

export type UpdateAcmeClientInput = z.output<typeof updateAcmeClientInput>;
