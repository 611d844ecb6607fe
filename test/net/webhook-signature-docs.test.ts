/**
 * The lines of docs/how-to/notify-by-webhook.md that verify a webhook do so, and take nothing that was changed, is old
 * or is none.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { signatureHeaders, signingKey, signingSecret } from '../../src/net/webhook-signature.ts';

type Verifier = (headers: Record<string, string>, body: string, secret: string) => boolean;

test('the code in the manual accepts valid signatures and rejects changed, old and malformed ones', async () => {
  const manual = readFileSync(new URL('../../docs/how-to/notify-by-webhook.md', import.meta.url), 'utf8');
  const code = /^```js\n([\s\S]*?)^```/m.exec(manual)?.[1];
  assert(code);
  const from = `data:text/javascript,${encodeURIComponent(code)}`;
  const { isFromVault } = (await import(from)) as { isFromVault: Verifier };
  const secret = signingSecret(Buffer.alloc(32, 9));
  const key = signingKey(secret);
  assert(key);
  const now = Date.now();
  const signed = (at: number) => signatureHeaders(new Secret(key), { id: 'msg_1', body: '{}' }, at);
  const { 'webhook-signature': right = '', ...others } = signed(now);
  assert.equal(isFromVault(signed(now), '{}', secret), true);
  assert.equal(isFromVault({ ...others, 'webhook-signature': `v1,AAAA ${right}` }, '{}', secret), true);
  assert.equal(isFromVault(signed(now), '{ }', secret), false);
  assert.equal(isFromVault({ ...signed(now), 'webhook-id': 'msg_2' }, '{}', secret), false);
  assert.equal(isFromVault(signed(now), '{}', signingSecret(Buffer.alloc(32, 8))), false);
  assert.equal(isFromVault(signed(now - 301_000), '{}', secret), false);
  assert.equal(isFromVault({ ...signed(now), 'webhook-timestamp': 'soon' }, '{}', secret), false);
  assert.equal(isFromVault({ ...others, 'webhook-signature': 'v1,' }, '{}', secret), false);
});
