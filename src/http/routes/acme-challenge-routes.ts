/**
 * Responses to http-01 challenges (RFC 8555 §8.3). They come from the database, so that any process of the vault can
 * answer them, regardless of which one has the order.
 */
import { Problem } from '../../base/problem.ts';
import { openHttpChallenge } from '../../domain/orders/open-challenges.ts';
import { type Route, route } from '../request/route.ts';

/** Tokens are base64url without padding; other paths are rejected without a database query. */
const tokenForm = /^[A-Za-z0-9_-]+$/;

export const acmeChallengeRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/.well-known/acme-challenge/{token}',
    id: 'getAcmeChallenge',
    summary: 'Return the key authorization of a pending http-01 challenge',
    access: { kind: 'public' },
    replies: {
      200: { description: 'the key authorization', contentType: 'application/octet-stream' },
    },
    problems: ['not_found'],
    handle: async ({ context: { vault }, params: { token = '' } }) => {
      const challenge = tokenForm.test(token) ? await openHttpChallenge(vault, token) : undefined;
      if (challenge === undefined) throw new Problem('not_found');
      return {
        status: 200,
        headers: { 'Content-Type': 'application/octet-stream', 'Cache-Control': 'no-store' },
        body: challenge.key_authorization,
      };
    },
  }),
];
