/** The target `webhook` against receivers that know the Standard Webhooks specification and the manual alone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { realWorld } from '../../src/base/world.ts';
import { type WebhookTargetConfig, webhookTarget } from '../../src/targets/webhook-target.ts';
import type { FakeRequest } from '../harness/http/fake-server.ts';
import { isSignedWith } from '../harness/http/webhook-receiver.ts';
import { loopbackGuard, loopbackOutbound } from '../harness/loopback-guard.ts';
import {
  type FakeProduct,
  type FakeTarget,
  type Held,
  heldFrom,
  startTarget,
} from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const wrong = `whsec_${Buffer.alloc(32, 8).toString('base64')}`;

const api: FakeTarget<WebhookTargetConfig> = {
  type: webhookTarget,
  settings: (url) => ({ url: `${url}/certificates?token=t0ken-4711`, secret }),
  wrong: { secret: wrong },
  denial: /^failed to deliver the certificate: 127\.0\.0\.1:\d+ responded with 401 Unauthorized$/,
  wrongSecret: wrong,
  secrets: [secret, 't0ken-4711'],
  isInstallation: () => true,
  error: (status, words) => ({ status, json: { error: words } }),
  hasWords: false,
  ignoresResponses: true,
  create: (_server, world): FakeProduct => {
    let held: Held[] = [];
    return {
      held: () => held,
      handler: (request) => {
        const { method, path, query, headers, body } = request;
        if (method !== 'POST' || path !== '/certificates' || query.get('token') !== 't0ken-4711')
          return undefined;
        if (!isSignedWith(secret, { headers, body, json: {} as never }, world.now())) return { status: 401 };
        const { certificate_pem, chain_pem, fullchain_pem, private_key_pem } = JSON.parse(body);
        const one = heldFrom(certificate_pem + chain_pem, private_key_pem);
        if (one === undefined || fullchain_pem !== one.certificate + one.chain) return { status: 422 };
        held = [one];
        return { status: 204 };
      },
    };
  },
};

targetScenarios(api);

test('a webhook receives all facts of the certificate as JSON', async (t) => {
  const { fake, install } = await startTarget(t, api);
  const { first } = await materials();
  await install(first);
  const [request] = fake.requests;
  assert.equal(request?.headers['content-type'], 'application/json');
  assert.deepEqual(JSON.parse(request?.body ?? ''), {
    certificate: 'web',
    version: 1,
    domains: first.domains,
    fingerprint_sha256: first.fingerprint,
    not_after: first.notAfter,
    certificate_pem: first.certificate,
    chain_pem: first.chain,
    fullchain_pem: first.fullchain,
    private_key_pem: first.privateKey.expose(),
  });
});

test('all attempts for a version have the same webhook id, and those for another version another one', async (t) => {
  const { fake, install } = await startTarget(t, api);
  const { first, second } = await materials();
  fake.interrupt({ status: 503 });
  await refusal(install(first));
  await install(first);
  await install(second);
  const ids = fake.requests.map(({ headers }) => headers['webhook-id']);
  assert.deepEqual(ids, ['web-1', 'web-1', 'web-2']);
});

test('the code in the manual accepts the request of a webhook', async (t) => {
  const { fake } = await startTarget(t, api);
  const context = { world: realWorld, outbound: loopbackOutbound, guard: loopbackGuard };
  const config = webhookTarget.config.parse(api.settings(fake.url));
  fake.handler = () => ({ status: 200, text: 'thank you' });
  const { first } = await materials();
  await webhookTarget.create(config, context).install(first, null, new AbortController().signal);
  const manual = readFileSync(new URL('../../docs/how-to/notify-by-webhook.md', import.meta.url), 'utf8');
  const code = /^```js\n([\s\S]*?)^```/m.exec(manual)?.[1] ?? '';
  const { isFromVault } = await import(`data:text/javascript,${encodeURIComponent(code)}`);
  const [{ headers, body }] = fake.requests as [FakeRequest];
  assert.equal(isFromVault(headers, body, secret), true);
  assert.equal(isFromVault(headers, `${body} `, secret), false);
});

test('a webhook and its lists show the origin of the URL only', () => {
  const config = webhookTarget.config.parse({ url: 'https://hooks.example:8443/a?token=b', secret });
  assert.equal(webhookTarget.host(config), 'hooks.example:8443');
  assert.equal(webhookTarget.destination(config, 'web'), 'https://hooks.example:8443');
});

const refused: readonly [change: object, message: RegExp][] = [
  [{ url: undefined }, /^is missing; it must be the URL that certificates are posted to$/],
  [{ url: 'http://hooks.example/x' }, /^must be an https:\/\/ URL without user and fragment/],
  [{ url: 'https://user:word@hooks.example/' }, /^must be an https:\/\/ URL/],
  [{ url: 'https://hooks.example/#part' }, /^must be an https:\/\/ URL/],
  [{ secret: undefined }, /^is missing; it must be the key that signs the requests$/],
  [{ secret: 'whsec_c2hvcnQ=' }, /^must be whsec_ followed by 24 to 64 bytes in Base64$/],
  [{ ca: 'no PEM' }, /^must be PEM certificates/],
];
for (const [change, message] of refused) {
  test(`a webhook with the setting ${JSON.stringify(change)} is rejected`, () => {
    const { error } = webhookTarget.config.safeParse({ url: 'https://hooks.example/x', secret, ...change });
    assert.match(error?.issues[0]?.message ?? '', message);
  });
}
