/** Administrators with a password, and requests as sent by pages of the vault. */
import assert from 'node:assert/strict';
import type { Role } from '../../../src/base/role.ts';
import { Secret } from '../../../src/base/secret.ts';
import { createAdministrator } from '../../../src/domain/access/administrators.ts';
import { Passwords } from '../../../src/domain/access/passwords.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { TestServer } from './test-server.ts';

/** The cheapest Argon2id parameters, because most tests do not depend on the cost. */
export const cheapHash = { memory: 8, passes: 1, parallelism: 1 } as const;

export const goodPassword = 'correct horse battery staple';
export const otherPassword = 'several words in a row';

export async function makeAdministrator(
  vault: Vault,
  name: string,
  password: string = goodPassword,
  role: Role = 'admin',
  profiles: string[] = [],
): Promise<void> {
  const passwords = new Passwords(vault.world, cheapHash);
  await createAdministrator(vault, passwords, localCli, {
    name,
    password: new Secret(password),
    ...{ role, profiles },
  });
}

export type Page = {
  /** Sends a request with the session cookie, like a page of the vault, with `body` as JSON. */
  readonly send: (method: string, path: string, body?: unknown, init?: RequestInit) => Promise<Response>;
  /** `name=value` */
  readonly cookie: string;
};

/** A request by a page of the vault. */
export function fromPage(
  method: string,
  body?: unknown,
  cookie?: string,
  more: RequestInit = {},
): RequestInit {
  return {
    method,
    ...more,
    headers: {
      'Sec-Fetch-Site': 'same-origin',
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
      ...(cookie !== undefined && { Cookie: cookie }),
      ...more.headers,
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  };
}

/** A page with this session cookie. */
export function pageWith({ get }: Pick<TestServer, 'get'>, cookie: string): Page {
  return {
    cookie,
    send: (method, path, body, init) => get(path, undefined, fromPage(method, body, cookie, init)),
  };
}

/** Signs in over HTTP. */
export async function signIn(
  server: Pick<TestServer, 'get'>,
  name: string,
  password: string = goodPassword,
  init: RequestInit = {},
): Promise<Page> {
  const response = await server.get(
    '/api/v1/session',
    undefined,
    fromPage('POST', { name, password }, undefined, init),
  );
  assert.equal(response.status, 201, await response.clone().text());
  return pageWith(server, cookieOf(response));
}

/** `name=value` of the cookie in a response. */
export function cookieOf(response: Response): string {
  const [cookie = ''] = response.headers.getSetCookie();
  return cookie.split(';', 1)[0] ?? '';
}
