/** Sign-in and back-channel logout with oidc-provider, a provider that others wrote. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { pageWith } from '../../../harness/http/sign-in-fixtures.ts';
import { testServer } from '../../../harness/http/test-server.ts';
import { beginSignIn, followBack } from '../../../harness/oidc/oidc-visitor.ts';
import { clientId, clientSecret, settingsOf } from '../../../harness/oidc/scripted-provider.ts';
import { TestWorld } from '../../../harness/test-world.ts';

/** The parts of oidc-provider that the test uses; it has no types of its own. */
type Provider = {
  readonly callback: () => (request: IncomingMessage, response: ServerResponse) => void;
  readonly interactionDetails: (
    request: IncomingMessage,
    response: ServerResponse,
  ) => Promise<{ readonly params: Readonly<Record<string, string>> }>;
  readonly interactionFinished: (
    request: IncomingMessage,
    response: ServerResponse,
    result: unknown,
  ) => Promise<void>;
  readonly Grant: new (
    of: unknown,
  ) => { readonly addOIDCScope: (scope: string) => void; readonly save: () => Promise<string> };
  readonly Client: {
    readonly find: (
      id: string,
    ) => Promise<{ backchannelLogout: (sub: string, sid: string) => Promise<void> }>;
  };
  readonly on: (event: string, listen: (context: unknown, error: unknown) => void) => void;
};

const packageName = 'oidc-provider';

test('a person of oidc-provider signs in, and its back-channel logout signs them out', async (t) => {
  let provider: Provider | undefined;
  const http = createServer((request, response) => {
    assert(provider);
    if (request.url?.startsWith('/interaction/')) void logIn(provider, request, response);
    else provider.callback()(request, response);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  t.after(() => {
    http.close();
    http.closeAllConnections();
  });
  const issuer = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  const oidc = settingsOf({ issuer });
  const world = new TestWorld(Date.now());
  const server = await testServer(t, { world, publicUrl: oidc.publicUrl, oidc });
  const { default: Made } = (await import(packageName)) as {
    default: new (issuer: string, configuration: unknown) => Provider;
  };
  provider = new Made(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [`${oidc.publicUrl}/oidc/callback`],
        backchannel_logout_uri: `${server.url}/oidc/backchannel-logout`,
        backchannel_logout_session_required: true,
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    features: { devInteractions: { enabled: false }, backchannelLogout: { enabled: true } },
    findAccount: async (_: unknown, id: string) => ({
      accountId: id,
      claims: async () => ({ sub: id, preferred_username: 'carol', groups: ['vault-operators'] }),
    }),
    interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    // By default it refuses to send logout tokens to loopback.
    fetch: (to: URL, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) =>
      fetch(to, options),
    cookies: { keys: ['a key of the test'] },
  });
  const { url, cookie } = await beginSignIn(server);
  const back = await throughProvider(url, oidc.publicUrl);
  assert.equal(back.searchParams.get('iss'), issuer);
  const { location, session } = await followBack(server, back, cookie);
  assert.equal(location, `${oidc.publicUrl}/signed-in`);
  const page = pageWith(server, session ?? '');
  const person = (await (await page.send('GET', '/api/v1/session')).json()) as { name: string; role: string };
  assert.deepEqual([person.name, person.role], ['carol', 'operator']);
  // The code is spent.
  assert.match((await followBack(server, back, cookie)).location, /refused=invalid$/);
  const sid = await server.vault.db.reader
    .selectFrom('sessions')
    .select('oidc_sid')
    .executeTakeFirstOrThrow();
  const client = await provider.Client.find(clientId);
  await client.backchannelLogout('subject-of-carol', sid.oidc_sid ?? '');
  assert.equal((await page.send('GET', '/api/v1/session')).status, 401);
});

/** The person logs in and consents. */
async function logIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: 'subject-of-carol', clientId: params.client_id });
  grant.addOIDCScope('openid profile email');
  const result = { login: { accountId: 'subject-of-carol' }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result);
}

/** Follows redirects, with cookies, until one leads to the vault. */
async function throughProvider(start: string, publicUrl: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let at = new URL(start);
  for (let step = 0; step < 10; step += 1) {
    if (at.origin === publicUrl) return at;
    const headers = { Cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const response = await fetch(at, { redirect: 'manual', headers });
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split(/=(.*)/s);
      cookies.set(name, value);
    }
    const location = response.headers.get('Location');
    assert(location, `${response.status} ${await response.text()}`);
    at = new URL(location, at);
  }
  throw new Error('too many redirects');
}
