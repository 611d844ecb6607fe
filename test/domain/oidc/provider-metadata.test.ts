/** The issuer in the metadata of a provider: exactly the configured one, or the refusal says which it is. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ProviderMetadata } from '../../../src/domain/oidc/provider-metadata.ts';
import { OidcRefusal } from '../../../src/domain/oidc/refusal.ts';
import type { OutboundRequest } from '../../../src/net/outbound-http.ts';
import { settingsOf } from '../../harness/oidc/scripted-provider.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** The metadata at the configured issuer, which says that its issuer is `found`. */
async function discovered(configured: string, found: unknown) {
  const requests: string[] = [];
  const outbound = async ({ url }: OutboundRequest) => {
    requests.push(url);
    const metadata = {
      issuer: found,
      authorization_endpoint: 'https://login.example.com/authorize',
      token_endpoint: 'https://login.example.com/token',
      jwks_uri: 'https://login.example.com/jwks',
      response_types_supported: ['code'],
    };
    const headers = new Headers({ 'Content-Type': 'application/json' });
    return { status: 200, headers, body: Buffer.from(JSON.stringify(metadata)) } as never;
  };
  const provider = new ProviderMetadata(
    { world: new TestWorld(), outbound },
    settingsOf({ issuer: configured }),
  );
  try {
    const { configuration } = await provider.discovered();
    return { requests, issuer: configuration.serverMetadata().issuer };
  } catch (error) {
    assert(error instanceof OidcRefusal, String(error));
    return { requests, summary: error.summary };
  }
}

const host = 'https://login.example.com';
const microsoft = 'https://login.microsoftonline.com';

const exact = [
  host,
  `${host}/`,
  `${host}/realms/one`,
  `${host}/application/o/vault/`,
  'http://127.0.0.1:5556/dex',
  `${microsoft}/0f8fad5b-d9cb-469f-a165-70867728950e/v2.0`,
];

for (const issuer of exact) {
  test(`the metadata of ${issuer} with exactly this issuer is accepted`, async () => {
    const found = await discovered(issuer, issuer);
    assert.deepEqual(found.issuer, issuer);
    const { pathname } = new URL(issuer);
    const path = `${pathname === '/' ? '' : pathname.replace(/\/$/, '')}/.well-known/openid-configuration`;
    assert.deepEqual(found.requests, [new URL(path, issuer).href]);
  });
}

const others: readonly (readonly [configured: string, found: string])[] = [
  [host, `${host}/`],
  [`${host}/`, host],
  [`${host}/realms/one`, `${host}/realms/one/`],
  [`${host}/realms/one/`, `${host}/realms/one`],
  [`${host}/realms/one`, `${host}/realms/One`],
  [host, `${host}:443`],
  [host, 'https://LOGIN.example.com'],
  [host, 'https://login.example.net'],
  [host, 'http://login.example.com'],
  [`${host}/a`, `${host}/b/../a`],
  ['http://127.0.0.1:5556/dex', 'http://localhost:5556/dex'],
  [`${microsoft}/common/v2.0`, `${microsoft}/{tenantid}/v2.0`],
  [`${microsoft}/organizations/v2.0`, `${microsoft}/{tenantid}/v2.0`],
];

for (const [configured, found] of others) {
  test(`the metadata of ${configured} with the issuer ${found} is refused, with this issuer`, async () => {
    const { summary } = await discovered(configured, found);
    assert.equal(summary, `the metadata of the provider has another issuer: ${found}`);
  });
}

test('an issuer of any length in the metadata is shortened, and one that is no text is refused', async () => {
  const { summary = '' } = await discovered(host, `${host}/${'x'.repeat(10_000)}`);
  assert.match(
    summary,
    /^the metadata of the provider has another issuer: https:\/\/login\.example\.com\/x+/,
  );
  assert(summary.length < 300, String(summary.length));
  for (const found of [undefined, null, 7, ['x'], '']) {
    assert.equal(typeof (await discovered(host, found)).summary, 'string', String(found));
  }
});
