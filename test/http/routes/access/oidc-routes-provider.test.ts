/** Sign-in in a browser and by the device flow, and back-channel logout, with oidc-provider, which others wrote. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { pageWith } from '../../../harness/http/sign-in-fixtures.ts';
import { type TestServer, testServer } from '../../../harness/http/test-server.ts';
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

/** A vault and its oidc-provider, with carol. */
async function site(
  t: TestContext,
): Promise<{ readonly provider: Provider; readonly issuer: string; readonly server: TestServer }> {
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
  const oidc = settingsOf({ issuer }, { deviceFlow: true });
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
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      deviceFlow: { enabled: true },
    },
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
  return { provider, issuer, server };
}

test('a person of oidc-provider signs in, and its back-channel logout signs them out', async (t) => {
  const { provider, issuer, server } = await site(t);
  const { publicUrl = '' } = server.context;
  const { url, cookie } = await beginSignIn(server);
  const back = await throughProvider(url, publicUrl);
  assert.equal(back.searchParams.get('iss'), issuer);
  const { location, session } = await followBack(server, back, cookie);
  assert.equal(location, `${publicUrl}/signed-in`);
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

test('a person of oidc-provider confirms the code of a program, which gets a session once', async (t) => {
  const { server } = await site(t);
  const post = async (path: string, body?: unknown) => {
    const response = await server.get(`/api/v1/session/device${path}`, undefined, {
      method: 'POST',
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    });
    return { status: response.status, body: (await response.json()) as Record<string, string> };
  };
  const { body: begun } = await post('');
  const { handle, user_code: code = '', verification_uri_complete: page = '' } = begun;
  assert.match(page, new RegExp(`user_code=${code}$`));
  server.world.advance(5000);
  assert.equal((await post('/token', { handle })).status, 202);
  await confirm(page);
  server.world.advance(5000);
  const { status, body } = await post('/token', { handle });
  assert.equal(status, 201, JSON.stringify(body));
  assert.deepEqual([body.name, body.role], ['carol', 'operator']);
  assert.equal((await server.get('/api/v1/certificates', body.token)).status, 200);
  server.world.advance(5000);
  assert.equal((await post('/token', { handle })).status, 409);
});

test('a person of oidc-provider cancels the code of a program, which gets no session', async (t) => {
  const { server } = await site(t);
  const begun = await server.get('/api/v1/session/device', undefined, { method: 'POST' });
  const { handle, verification_uri_complete: page = '' } = (await begun.json()) as Record<string, string>;
  await confirm(page, { abort: 'yes' });
  server.world.advance(5000);
  const refused = await server.get('/api/v1/session/device/token', undefined, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ handle }),
  });
  const { detail } = (await refused.json()) as { detail: string };
  assert.deepEqual([refused.status, detail], [403, 'The sign-in was declined at the identity provider.']);
});

/** The person logs in and consents. */
async function logIn(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { params } = await provider.interactionDetails(request, response);
  const grant = new provider.Grant({ accountId: 'subject-of-carol', clientId: params.client_id });
  grant.addOIDCScope('openid profile email');
  const result = { login: { accountId: 'subject-of-carol' }, consent: { grantId: await grant.save() } };
  await provider.interactionFinished(request, response, result);
}

/** A browser, reduced to cookies and redirects. */
class Browser {
  readonly #cookies = new Map<string, string>();

  /** Requests a page, or posts a form to it. */
  async visit(at: URL, form?: URLSearchParams): Promise<Response> {
    const headers = { Cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') };
    const posted = form && { method: 'POST', body: form };
    const response = await fetch(at, { redirect: 'manual', headers, ...posted });
    for (const line of response.headers.getSetCookie()) {
      const [name = '', value = ''] = (line.split(';', 1)[0] ?? '').split(/=(.*)/s);
      this.#cookies.set(name, value);
    }
    return response;
  }

  /** Follows redirects until one leads elsewhere, or to a page. */
  async follow(start: URL, response: Response): Promise<{ readonly at: URL; readonly last: Response }> {
    let [at, last] = [start, response];
    for (let step = 0; step < 10; step += 1) {
      const location = last.headers.get('Location');
      if (location === null) return { at, last };
      at = new URL(location, at);
      if (at.origin !== start.origin) return { at, last };
      last = await this.visit(at);
    }
    throw new Error('too many redirects');
  }
}

/** Signs in, and is sent back to the vault. */
async function throughProvider(start: string, publicUrl: string): Promise<URL> {
  const browser = new Browser();
  const url = new URL(start);
  const { at, last } = await browser.follow(url, await browser.visit(url));
  assert.equal(at.origin, publicUrl, `${last.status}`);
  return at;
}

/** Submits the forms of the device flow with the code in the URL, and with `more` on the one that asks for consent. */
async function confirm(page: string, more: Readonly<Record<string, string>> = {}): Promise<void> {
  const browser = new Browser();
  const url = new URL(page);
  const form = async (from: Response, fields: Readonly<Record<string, string>>) => {
    const text = await from.text();
    const xsrf = /name="xsrf" value="([^"]+)"/.exec(text)?.[1];
    assert(xsrf, text);
    const code = url.searchParams.get('user_code') ?? '';
    const to = new URL('/device', url);
    const sent = await browser.visit(to, new URLSearchParams({ xsrf, user_code: code, ...fields }));
    return (await browser.follow(to, sent)).last;
  };
  const shown = await form(await browser.visit(url), {});
  const done = await form(shown, { confirm: 'yes', ...more });
  assert.equal(done.status, 200, await done.clone().text());
}
