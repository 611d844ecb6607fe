/** Input schemas of enrollments, shared by the API and the command line. */
import { z } from 'zod';
import { label, timestamp } from '../input-strings.ts';
import { type CreateApiKeyInput, createApiKeyInput } from '../inputs.ts';

/** Uses of one token: each creates an API key, and all of them can be revoked together. */
export const maxUses = 10_000;

const { scopes, certificates, certificate_labels, allowed_networks, labels } = createApiKeyInput.shape;

const settings = z.strictObject({
  name: label.optional().describe('what the enrollment is for; by default, the public prefix of its token'),
  scopes: scopes.prefault(['certificates:read', 'private_keys:read']).describe('what the keys may do'),
  certificates,
  certificate_labels,
  allowed_networks: allowed_networks.describe(
    'networks that the token and the keys work from; empty, or with "*", for any',
  ),
  bind_address: z
    .boolean()
    .default(false)
    .describe('whether each key works only from the address that the token was exchanged at'),
  labels: labels.describe('labels of the enrollment and of the keys, such as team=web'),
  uses: z
    .int()
    .min(1, 'a token has at least one use')
    .max(maxUses, `a token has at most ${maxUses} uses`)
    .default(1)
    .describe('how many API keys the token creates'),
  expires_at: timestamp.describe('until when the token works'),
  key_expires_at: timestamp.optional().describe('when the keys expire; never if left out'),
});

const noAllowlist = z.object({ certificates: z.tuple([]), certificate_labels: z.tuple([]) });

export const createEnrollmentInput = settings.refine(() => false, {
  path: ['certificates'],
  error: 'at least one certificate name or label is required, or "*" for any certificate',
  // Beside errors of other fields, too.
  when: ({ value }) =>
    noAllowlist.safeParse({ certificates: [], certificate_labels: [], ...Object(value) }).success,
});

export type CreateEnrollmentInput = z.output<typeof createEnrollmentInput>;

export const revokeEnrollmentInput = z.strictObject({
  api_keys: z
    .boolean()
    .default(false)
    .describe('whether to revoke the API keys, too, that the enrollment created'),
});

export type RevokeEnrollmentInput = z.output<typeof revokeEnrollmentInput>;

/** A host name, or the part of one that a key name takes. */
const hostPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/;

export const exchangeInput = z.strictObject({
  host: z
    .string()
    .regex(hostPattern, 'a host has up to 100 letters, digits, dots, dashes and underscores')
    .describe('the name of the machine, after which the key is named'),
  request: z
    .string()
    .regex(/^[A-Za-z0-9_-]{16,128}$/, 'a request has 16 to 128 letters, digits, dashes and underscores')
    .optional()
    .describe(
      'random text of the client: a repeated request with the same one replaces the secret of the key that the first created, and takes no other use',
    ),
});

export type ExchangeInput = z.output<typeof exchangeInput>;

/** The settings that the keys of an enrollment have in common, as those of one key. */
export function keySettings(input: CreateEnrollmentInput, name: string): CreateApiKeyInput {
  const { scopes: allowed, certificates: named, certificate_labels: labelled, key_expires_at } = input;
  return {
    name,
    scopes: allowed,
    certificates: named,
    certificate_labels: labelled,
    allowed_networks: input.allowed_networks,
    labels: input.labels,
    profiles: [],
    role: null,
    reach: [],
    client_certificate: null,
    expires_at: key_expires_at,
  };
}
