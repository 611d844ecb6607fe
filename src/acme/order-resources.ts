/** Parses the orders, authorizations and challenges of a CA (RFC 8555 §7.1.3 to §7.1.5). */
import { z } from 'zod';
import { parseTimestamp } from '../base/timestamp.ts';
import { type AcmeAnswer, absoluteUrl, jsonIn, locationOf } from './acme-answer.ts';
import type { AcmeAuthorization, AcmeChallenge, AcmeOrder, AcmeProblem } from './acme-types.ts';
import { readProblem } from './problem-document.ts';

const most = 1000;

const problem = z
  .unknown()
  .transform((json): AcmeProblem | undefined => readProblem(json))
  .optional();

const order = z.object({
  status: z.enum(['pending', 'ready', 'processing', 'valid', 'invalid']),
  authorizations: z.array(absoluteUrl).max(most),
  finalize: absoluteUrl,
  certificate: absoluteUrl.optional(),
  expires: z.string().optional().catch(undefined),
  profile: z.string().optional(),
  replaces: z.string().optional().catch(undefined),
  error: problem,
});

const challenge = z
  .object({
    type: z.string(),
    url: absoluteUrl,
    status: z.enum(['pending', 'processing', 'valid', 'invalid']),
    token: z.string().optional(),
    error: problem,
    accounturi: z.string().optional(),
    'issuer-domain-names': z.array(z.string()).max(most).catch([]),
  })
  .transform(
    ({ type, url, status, token, error, ...members }): AcmeChallenge => ({
      ...{ type, url, status, token, error },
      accountUri: members.accounturi,
      issuerDomainNames: members['issuer-domain-names'],
    }),
  );

const authorization = z.object({
  status: z.enum(['pending', 'valid', 'invalid', 'deactivated', 'expired', 'revoked']),
  identifier: z.object({ type: z.enum(['dns', 'ip']), value: z.string().min(1).max(most) }),
  wildcard: z.boolean().catch(false),
  challenges: z.array(challenge).max(most),
});

/**
 * The order with this URL, or with that in the Location header. Throws AcmeError `protocol` if the response contains no
 * order.
 */
export function readOrder(answer: AcmeAnswer, url?: string): AcmeOrder {
  const { expires, ...data } = jsonIn(answer, 'an order', order);
  return {
    url: url ?? locationOf(answer, 'an order'),
    status: data.status,
    authorizations: data.authorizations,
    finalize: data.finalize,
    certificate: data.certificate,
    expires: expires === undefined ? undefined : parseTimestamp(expires),
    profile: data.profile,
    replaces: data.replaces,
    error: data.error,
    retryAfterMs: answer.retryAfterMs,
  };
}

/** The requested authorization. Throws AcmeError `protocol` if the response contains none. */
export function readAuthorization(answer: AcmeAnswer): AcmeAuthorization {
  const data = jsonIn(answer, 'an authorization', authorization);
  return { url: answer.url, ...data, retryAfterMs: answer.retryAfterMs };
}
