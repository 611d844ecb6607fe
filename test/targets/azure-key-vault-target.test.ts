/** The target `azure-key-vault` against a fake of the REST API 7.4 of Key Vault and the login of a tenant. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import {
  type AzureKeyVaultTargetConfig,
  azureKeyVaultTarget,
} from '../../src/targets/azure-key-vault-target.ts';
import type { FakeReply } from '../harness/http/fake-server.ts';
import { loopbackGuard } from '../harness/loopback-guard.ts';
import {
  type FakeProduct,
  type FakeTarget,
  type Held,
  heldFrom,
  heldOf,
  startTarget,
} from '../harness/targets/fake-target.ts';
import { materials, refusal, targetScenarios } from '../harness/targets/target-scenarios.ts';

const clientSecret = 'azure~vault.secret.4711/+';
const wrong = 'azure-vault-wrong-0815';
const accessToken = 'eyJ0eXAiOiJKV1QifQ.azure-access-token';
const tenant = '11111111-2222-3333-4444-555555555555';

type KeyVault = FakeProduct & { readonly certificates: Map<string, Held> };

const failure = (status: number, code: string, message: string): FakeReply => ({
  status,
  json: { error: { code, message } },
});

const api: FakeTarget<AzureKeyVaultTargetConfig, KeyVault> = {
  type: azureKeyVaultTarget,
  settings: (url) => ({
    ...{ url, login_url: url, tenant_id: tenant, client_id: 'app-1', client_secret: clientSecret },
  }),
  wrong: { client_secret: wrong },
  denial:
    /^failed to get an access token: 127\.0\.0\.1:\d+ responded with 401 invalid_client: AADSTS7000215: Invalid client secret \[secret\]$/,
  wrongSecret: wrong,
  secrets: [clientSecret, encodeURIComponent(clientSecret), accessToken],
  isInstallation: ({ path }) => path.endsWith('/import'),
  isLogin: ({ path }) => path.endsWith('/token'),
  error: (status, words) => failure(status, 'InternalError', words),
  hasWords: true,
  create: () => {
    const certificates = new Map<string, Held>();
    const bundleOf = (name: string, { certificate }: Held) => {
      const { raw } = new X509Certificate(certificate);
      const attributes = { enabled: true, recoveryLevel: 'Recoverable+Purgeable' };
      return {
        id: `https://v1.vault.azure.net/certificates/${name}/1`,
        cer: raw.toString('base64'),
        attributes,
      };
    };
    return {
      certificates,
      held: () => [...certificates.values()],
      replace: (other) => {
        for (const name of certificates.keys()) certificates.set(name, other);
      },
      clear: () => certificates.clear(),
      handler: ({ method, path, query, headers, body }) => {
        if (path === `/${tenant}/oauth2/v2.0/token`) {
          const { client_secret, ...form } = Object.fromEntries(new URLSearchParams(body));
          assert.deepEqual(form, {
            ...{
              grant_type: 'client_credentials',
              client_id: 'app-1',
              scope: 'https://vault.azure.net/.default',
            },
          });
          if (client_secret === clientSecret) {
            return {
              status: 200,
              json: { token_type: 'Bearer', expires_in: 3599, access_token: accessToken },
            };
          }
          const error_description = `AADSTS7000215: Invalid client secret ${client_secret}`;
          return { status: 401, json: { error: 'invalid_client', error_description } };
        }
        if (headers.authorization !== `Bearer ${accessToken}`)
          return failure(401, 'Unauthorized', 'AKV10000: Request is missing a Bearer or PoP token.');
        if (query.get('api-version') !== '7.4')
          return failure(400, 'BadParameter', 'api-version must be specified');
        const [, name = '', isImport] = /^\/certificates\/([0-9A-Za-z-]{1,127})(\/import)?$/.exec(path) ?? [];
        if (name === '')
          return failure(400, 'BadParameter', `The request URI contains an invalid name: ${path}`);
        if (method === 'POST' && isImport !== undefined) {
          const { value, policy } = JSON.parse(body);
          const [key = '', certificates_ = ''] = String(value).split(/(?<=-----END PRIVATE KEY-----\n)/);
          const held = heldFrom(certificates_, key);
          if (policy?.secret_props?.contentType !== 'application/x-pem-file' || held === undefined) {
            return failure(
              400,
              'BadParameter',
              'The specified PEM X.509 certificate content is in an unexpected format.',
            );
          }
          certificates.set(name, held);
          return { status: 200, json: bundleOf(name, held) };
        }
        const held = certificates.get(name);
        if (method !== 'GET' || held === undefined) {
          return failure(404, 'CertificateNotFound', `A certificate with (name/id) ${name} was not found.`);
        }
        return { status: 200, json: bundleOf(name, held) };
      },
    };
  },
};

targetScenarios(api);

const { signal } = new AbortController();

const names: readonly [name: string, certificate: string, cleaned: string][] = [
  ['{certificate}', 'www.example.com', 'www-example-com'],
  ['tls_{certificate}', '*.example.org', 'tls---example-org'],
  ['{certificate}', 'a'.repeat(130), 'a'.repeat(127)],
];
for (const [name, certificate, cleaned] of names) {
  test(`azure-key-vault: ${certificate} as ${name} is imported as ${cleaned}`, async (t) => {
    const { fake, product, made } = await startTarget(t, api);
    const { first } = await materials();
    const target = made({ name });
    await target.install({ ...first, name: certificate }, null, signal);
    assert.deepEqual([...product.certificates.keys()], [cleaned]);
    assert.equal(await target.isInstalled?.({ ...first, name: certificate }, null, signal), true);
    const config = azureKeyVaultTarget.config.parse({ ...api.settings(fake.url), name });
    assert.equal(azureKeyVaultTarget.destination(config, certificate), cleaned);
  });
}

test('azure-key-vault: a missing role is reported in the words of Azure', async (t) => {
  const { fake, install } = await startTarget(t, api);
  const words = 'Caller is not authorized to perform action on resource.';
  fake.interrupt(failure(403, 'Forbidden', words), api.isInstallation);
  const { message } = await refusal(install((await materials()).first));
  assert.match(
    message,
    /^failed to import the certificate web: .* responded with 403 Forbidden: Caller is not authorized/,
  );
});

test('azure-key-vault: a response to the login that has no token is an error', async (t) => {
  const { fake, product, install } = await startTarget(t, api);
  fake.interrupt({ status: 200, text: 'Welcome to the hotel network!' });
  const { message } = await refusal(install((await materials()).first));
  assert.equal(message, 'failed to get an access token: unexpected response');
  assert.deepEqual(product.held(), []);
});

const clouds: readonly [url: string, scope: string][] = [
  ['https://v1.vault.azure.net', 'https://vault.azure.net/.default'],
  ['https://v1.vault.azure.cn', 'https://vault.azure.cn/.default'],
  ['https://v1.vault.usgovcloudapi.net', 'https://vault.usgovcloudapi.net/.default'],
  ['https://localhost:8443', 'https://vault.azure.net/.default'],
];
for (const [url, scope] of clouds) {
  test(`azure-key-vault: the access token for ${url} has the scope ${scope}`, async (t) => {
    const { fake, world } = await startTarget(t, api);
    const scopes: unknown[] = [];
    const outbound: typeof fake.outbound = async ({ body }) => {
      scopes.push(new URLSearchParams(String(body)).get('scope'));
      return { status: 503, headers: {}, body: Buffer.of() };
    };
    const config = azureKeyVaultTarget.config.parse(api.settings(url));
    const target = azureKeyVaultTarget.create(config, { world, outbound, guard: loopbackGuard });
    await refusal(target.install((await materials()).first, null, signal));
    assert.deepEqual(scopes, [scope]);
  });
}

test('azure-key-vault: without login_url, the login is at login.microsoftonline.com', async (t) => {
  const { fake, product, world } = await startTarget(t, api);
  const origins: string[] = [];
  const outbound: typeof fake.outbound = (request) => {
    const { origin } = new URL(request.url);
    origins.push(origin);
    return fake.outbound({ ...request, url: fake.url + request.url.slice(origin.length) });
  };
  const settings = { ...api.settings('https://v1.vault.azure.net/'), login_url: undefined };
  const config = azureKeyVaultTarget.config.parse(settings);
  const { first } = await materials();
  await azureKeyVaultTarget
    .create(config, { world, outbound, guard: loopbackGuard })
    .install(first, null, signal);
  assert.deepEqual(origins, ['https://login.microsoftonline.com', 'https://v1.vault.azure.net']);
  assert.deepEqual(product.held(), [heldOf(first)]);
});

const refused: readonly [change: object, message: RegExp][] = [
  [{ url: undefined }, /^is missing; it must be the URL of the API$/],
  [{ url: 'http://v1.vault.azure.net' }, /^must be an https:\/\/ URL without user, query and fragment/],
  [
    { login_url: 'https://login.example/?a=b' },
    /^must be an https:\/\/ URL without user, query and fragment/,
  ],
  [{ tenant_id: undefined }, /^is missing; it must be the directory \(tenant\) id$/],
  [{ client_id: undefined }, /^is missing; it must be the application \(client\) id$/],
  [
    { client_secret: 'a b' },
    /^must be a client secret of the application \(its value, not its id\), without spaces/,
  ],
  [{ name: 'a b' }, /^must be the name of a certificate: letters, digits/],
];
for (const [change, message] of refused) {
  test(`azure-key-vault: the setting ${JSON.stringify(change)} is rejected`, () => {
    const settings = { ...api.settings('https://v1.vault.azure.net'), ...change };
    assert.match(azureKeyVaultTarget.config.safeParse(settings).error?.issues[0]?.message ?? '', message);
  });
}
