/** Signatures of webhooks: those of the published example, so that every library for them verifies ours. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { signatureHeaders, signingKey, signingSecret } from '../../src/net/webhook-signature.ts';

test('signatureHeaders returns the signature of the published example', () => {
  const key = signingKey('whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw');
  assert(key);
  const sent = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
  assert.deepEqual(signatureHeaders(new Secret(key), sent, 1_614_265_330_999), {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  });
});

test('signingKey accepts only 24 to 64 bytes in Base64 after the whsec_ prefix', () => {
  for (const size of [24, 25, 26, 32, 64]) {
    const bytes = Buffer.alloc(size, 0xfb);
    assert.deepEqual(signingKey(signingSecret(bytes)), bytes);
    assert.deepEqual(signingKey(signingSecret(bytes).replace(/=+$/, '')), bytes);
  }
  const wrong = [
    ...[23, 65].map((size) => signingSecret(Buffer.alloc(size))),
    ...['', 'whsec_', signingSecret(Buffer.alloc(32)).slice(6), `${signingSecret(Buffer.alloc(32))}\n`],
    ...['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS-', `whsec_${'A'.repeat(33)}`],
  ];
  for (const text of wrong) assert.equal(signingKey(text), undefined, text);
});
