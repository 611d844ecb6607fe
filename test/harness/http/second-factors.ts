/** Authenticator apps of people in tests, and sign-ins with a second step. */
import assert from 'node:assert/strict';
import { Secret } from '../../../src/base/secret.ts';
import { totpCode, totpStep } from '../../../src/crypto/secrets/totp.ts';
import { cookieOf, fromPage, goodPassword, type Page, pageWith } from './sign-in-fixtures.ts';
import type { TestServer } from './test-server.ts';

type Server = Pick<TestServer, 'get' | 'world'>;

export const factors = '/api/v1/second-factors';

export type App = {
  /** The code of the current time step, or of one so many steps away. */
  readonly code: (away?: number) => string;
  readonly recoveryCodes: readonly string[];
};

/** What an app with this secret (Base32) shows at a time. */
export function appOf(now: () => number, secret: string) {
  const bits = [...secret].map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter));
  const text = bits.map((bit) => bit.toString(2).padStart(5, '0')).join('');
  const bytes = Buffer.from((text.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  return (away = 0) => totpCode(new Secret(bytes), totpStep(now()) + away);
}

/** Sets up an authenticator app over HTTP. The code of the current step is used up afterwards. */
export async function setUpApp(server: Server, page: Page, password = goodPassword): Promise<App> {
  const begun = await page.send('POST', `${factors}/totp`, { password });
  assert.equal(begun.status, 201, await begun.clone().text());
  const { pending, secret } = (await begun.json()) as { pending: string; secret: string };
  const code = appOf(server.world.now, secret);
  const done = await page.send('PUT', `${factors}/totp`, { pending, code: code() });
  assert.equal(done.status, 200, await done.clone().text());
  const { recovery_codes } = (await done.json()) as { recovery_codes: string[] };
  return { code, recoveryCodes: recovery_codes };
}

/** The first step of a sign-in; returns the cookie that permits the second. */
export async function firstStep(server: Server, name: string, password = goodPassword): Promise<string> {
  const response = await server.get('/api/v1/session', undefined, fromPage('POST', { name, password }));
  assert.equal(response.status, 202, await response.clone().text());
  return cookieOf(response);
}

/** The second step. */
export async function secondStep(
  server: Pick<Server, 'get'>,
  cookie: string | undefined,
  code: string,
): Promise<Response> {
  return server.get('/api/v1/session/second-step', undefined, fromPage('POST', { code }, cookie));
}

/** Signs in with both steps. */
export async function signInTwice(server: Server, name: string, code: string): Promise<Page> {
  const response = await secondStep(server, await firstStep(server, name), code);
  assert.equal(response.status, 201, await response.clone().text());
  return pageWith(server, cookieOf(response));
}
