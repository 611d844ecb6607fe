/** What the ACME server sends and takes, for the API document (RFC 8555 §7.1). */
import { z } from 'zod';

const url = z.url();
const time = z.iso.datetime();

/** A flattened JWS; other members are refused where it is read. */
export const signedSchema = z.looseObject({
  protected: z.unknown().describe('base64url of the headers alg, nonce, url, and jwk or kid'),
  payload: z.unknown().describe('base64url of the JSON that is asked for; empty to read a resource'),
  signature: z.unknown().describe('base64url'),
});

export const directorySchema = z.strictObject({
  newNonce: url,
  newAccount: url,
  newOrder: url,
  revokeCert: url,
  keyChange: url,
  renewalInfo: url,
  meta: z.strictObject({
    termsOfService: url.optional(),
    externalAccountRequired: z.literal(true),
    profiles: z.record(z.string(), z.string()).optional(),
  }),
});

export const renewalInfoSchema = z.strictObject({
  suggestedWindow: z.strictObject({ start: time, end: time }),
});

export const accountSchema = z.strictObject({
  status: z.enum(['valid', 'deactivated']),
  contact: z.array(z.string()),
  orders: url,
});

export const orderListSchema = z.strictObject({ orders: z.array(url) });

const identifier = z.strictObject({ type: z.enum(['dns', 'ip']), value: z.string() });

const subproblem = z.looseObject({
  type: z.string(),
  detail: z.string(),
  identifier: z.unknown().optional(),
});

export const acmeProblemSchema = z.looseObject({
  // Missing in the answers to requests that no route sees.
  type: z.string().optional(),
  detail: z.string(),
  status: z.int(),
  identifier: z.unknown().optional(),
  subproblems: z.array(subproblem).optional(),
  algorithms: z.array(z.string()).optional(),
});

const problem = z.looseObject({ type: z.string() });

export const orderSchema = z.strictObject({
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  expires: time,
  identifiers: z.array(identifier),
  notBefore: time.optional(),
  notAfter: time.optional(),
  profile: z.string().optional(),
  replaces: z.string().optional(),
  error: problem.optional(),
  authorizations: z.array(url),
  finalize: url,
  certificate: url.optional(),
});

export const challengeSchema = z.strictObject({
  type: z.string(),
  url,
  status: z.enum(['pending', 'processing', 'valid', 'invalid']),
  token: z.string(),
  validated: time.optional(),
  error: problem.optional(),
});

export const authorizationSchema = z.strictObject({
  identifier,
  status: z.enum(['pending', 'valid', 'invalid', 'deactivated', 'expired']),
  expires: time,
  challenges: z.array(challengeSchema),
  wildcard: z.literal(true).optional(),
});
