/** A browser, reduced to its cookies, that signs in to a test server by OpenID Connect. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { ProviderSettings } from '../../../src/domain/oidc/provider-settings.ts';
import { fromPage } from '../http/sign-in-fixtures.ts';
import { type TestServer, testServer } from '../http/test-server.ts';
import { TestWorld } from '../test-world.ts';
import { type ScriptedProvider, scriptedProvider, settingsOf } from './scripted-provider.ts';

/** A vault whose clock is that of the provider, and the provider. */
export async function oidcServer(
  t: Pick<TestContext, 'after'>,
  more: Partial<ProviderSettings> = {},
): Promise<TestServer & { readonly provider: ScriptedProvider }> {
  const world = new TestWorld(Date.now());
  const provider = await scriptedProvider(t, world.now);
  const oidc = settingsOf(provider, more);
  const server = await testServer(t, {
    world,
    publicUrl: oidc.publicUrl,
    oidc,
  });
  return { ...server, provider };
}

/** A sign-in that has begun: the page of the provider, and the cookie, as `name=value`. */
export type Begun = { readonly url: string; readonly cookie: string };

export async function beginSignIn({ get }: Pick<TestServer, 'get'>): Promise<Begun> {
  const response = await get('/api/v1/session/oidc', undefined, fromPage('POST'));
  assert.equal(response.status, 201, await response.clone().text());
  const { url } = (await response.json()) as { url: string };
  return { url, cookie: cookiePair(response) };
}

/** Follows the provider's redirect; returns where the vault sends the browser, and the session if it has one. */
export async function followBack(
  { get }: Pick<TestServer, 'get'>,
  back: URL,
  cookie: string | undefined,
): Promise<{ readonly location: string; readonly session: string | undefined }> {
  const headers = { 'Sec-Fetch-Site': 'cross-site', ...(cookie !== undefined && { Cookie: cookie }) };
  const response = await get(back.pathname + back.search, undefined, { redirect: 'manual', headers });
  assert.equal(response.status, 303, await response.clone().text());
  const pair = cookiePair(response);
  return {
    location: response.headers.get('Location') ?? '',
    session: pair.startsWith('__Host-vault_session=') ? pair : undefined,
  };
}

/** Signs in from the button to the console. */
export async function signInByOidc(
  server: Pick<TestServer, 'get'> & { readonly provider: ScriptedProvider },
): Promise<{ readonly location: string; readonly session: string | undefined }> {
  const { url, cookie } = await beginSignIn(server);
  return followBack(server, server.provider.authorize(url), cookie);
}

function cookiePair(response: Response): string {
  return (response.headers.getSetCookie()[0] ?? '').split(';', 1)[0] ?? '';
}
