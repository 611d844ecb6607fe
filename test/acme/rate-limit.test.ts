/** What a refusal limits, by the words of CAs; what is not known for certain concerns the one certificate. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { AcmeError } from '../../src/acme/acme-error.ts';
import { type RateLimit, rateLimitOf } from '../../src/acme/rate-limit.ts';

const refusal = (status: number | undefined, type: string, detail: string) =>
  new AcmeError('problem', detail, {
    status,
    problem: {
      ...{ type: `urn:ietf:params:acme:error:${type}`, detail, status },
      ...{ instance: undefined, subproblems: [] },
    },
  });

const see = ', retry after 2026-11-29 09:13:16 UTC: see https://letsencrypt.org/docs/rate-limits/#some-limit';

/** Sentences that Boulder has sent. */
const sentences: Readonly<Record<string, RateLimit>> = {
  [`too many certificates (5) already issued for this exact set of identifiers in the last 168h0m0s${see}`]: {
    scope: 'names',
  },
  [`too many certificates (5) already issued for this exact set of domains in the last 168 hours: a.test${see}`]:
    {
      scope: 'names',
    },
  'Error creating new order :: too many certificates (5) already issued for this exact set of domains in the last 168 hours':
    { scope: 'names' },
  [`too many certificates (50) already issued for "Example.co.uk" in the last 168h0m0s${see}`]: {
    scope: 'domain',
    domain: 'example.co.uk',
  },
  [`too many new orders (300) from this account in the last 3h0m0s${see}`]: { scope: 'account' },
  [`too many failed authorizations (5) for "www.example.com" in the last 1h0m0s${see}`]: {
    scope: 'certificate',
  },
  'too many certificates': { scope: 'certificate' },
  'too many certificates (x) already issued for "example.com"': { scope: 'certificate' },
  'a quoted text: too many certificates (50) already issued for "example.com"': { scope: 'certificate' },
  '': { scope: 'certificate' },
};

suite('rateLimitOf', () => {
  for (const [detail, limit] of Object.entries(sentences)) {
    test(`returns ${limit.scope} for "${detail.slice(0, 90)}"`, () => {
      assert.deepEqual(rateLimitOf(refusal(429, 'rateLimited', detail)), limit);
      assert.deepEqual(rateLimitOf(refusal(undefined, 'rateLimited', detail)), limit);
    });
  }

  test('returns scope service for HTTP 503, regardless of the error text', () => {
    assert.deepEqual(rateLimitOf(refusal(503, 'serverInternal', 'busy')), { scope: 'service' });
    assert.deepEqual(rateLimitOf(refusal(503, 'rateLimited', 'Service busy; retry later.')), {
      scope: 'service',
    });
  });

  test('returns undefined for errors other than rateLimited and HTTP 503', () => {
    for (const [status, type] of [
      [400, 'malformed'],
      [403, 'unauthorized'],
      [500, 'serverInternal'],
    ] as const) {
      assert.equal(
        rateLimitOf(refusal(status, type, 'too many new orders (300) from this account')),
        undefined,
      );
    }
    assert.equal(rateLimitOf(new AcmeError('network', 'cut off')), undefined);
  });
});
