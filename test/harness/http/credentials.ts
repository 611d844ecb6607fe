/** Every endpoint that needs credentials, from the route table, and every kind of invalid credentials. */

import { type Scope, scopes } from '../../../src/base/scope.ts';
import { revokeApiKey } from '../../../src/domain/access/api-keys.ts';
import { localCli, system } from '../../../src/domain/audit/audit.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { routes } from './all-routes.ts';
import { makeKey, type TestKey } from './fixtures.ts';
import type { TestServer } from './test-server.ts';

export type GuardedEndpoint = {
  readonly method: string;
  /** The path, with the name of a certificate instead of `{name}`. */
  readonly path: (name: string) => string;
  readonly scope: Scope;
  /** Every scope that suffices. */
  readonly suffices: readonly Scope[];
  /** The status of an authorized request without a body. */
  readonly success: number;
  /** Header lines without which the request is refused. */
  readonly lines: readonly string[];
  readonly namesCertificate: boolean;
};

/** The endpoints that need a scope; `renewalId` is that of an open renewal. */
export function guardedEndpoints(renewalId: number): GuardedEndpoint[] {
  return routes.flatMap(({ method, path, access, replies, body, requestHeaders = [] }) => {
    if (access.kind !== 'scope') return [];
    const filled = path.replace('{id}', String(renewalId));
    return [
      {
        method,
        path: (name: string) => filled.replace('{name}', encodeURIComponent(name)),
        scope: access.scope,
        suffices: [access.scope, ...(access.orScope === undefined ? [] : [access.orScope])],
        success: body === undefined ? Number(Object.keys(replies)[0]) : 400,
        lines: requestHeaders.flatMap(({ name, required }) => (required ? [`${name}: changeit`] : [])),
        namesCertificate: path.includes('{name}'),
      },
    ];
  });
}

/** The endpoints that need an administrator's session. */
export function administratorEndpoints(id: number): { readonly method: string; readonly path: string }[] {
  return routes
    .filter(({ access }) => access.kind === 'administrator')
    .map(({ method, path }) => ({ method, path: path.replace('{id}', String(id)) }));
}

/** Returns the id of an open renewal. */
export async function openRenewal({ vault }: TestServer, name: string): Promise<number> {
  return (await requestRenewal(vault, system, name)).id;
}

export async function revokedKey({ vault }: TestServer): Promise<TestKey> {
  const key = await makeKey(vault, { name: 'revoked' });
  await revokeApiKey(vault, localCli, key.id);
  return key;
}

/** A key that expires exactly now, which makes it invalid. */
export async function expiredKey({ vault, world }: TestServer): Promise<TestKey> {
  const expires = world.now() + 1000;
  const key = await makeKey(vault, { name: 'expired', expires_at: new Date(expires).toISOString() });
  world.advance(1000);
  return key;
}

/** Header lines with invalid credentials, by their error. */
export function strangers({ raw }: TestKey): Readonly<Record<string, readonly string[]>> {
  const [prefix = '', secret = ''] = raw.split('.');
  const bearer = (text: string) => [`Authorization: Bearer ${text}`];
  return {
    'no header': [],
    'an empty header': ['Authorization:'],
    'no token': ['Authorization: Bearer'],
    garbage: bearer('garbage'),
    'another scheme': [`Authorization: Basic ${Buffer.from(`key:${raw}`).toString('base64')}`],
    'no scheme': [`Authorization: ${raw}`],
    'no space': [`Authorization: Bearer${raw}`],
    'two tokens': bearer(`${raw} ${raw}`),
    'a quoted token': bearer(`"${raw}"`),
    'a token with extra characters': bearer(`${raw}a`),
    'a truncated token': bearer(raw.slice(0, -1)),
    'the prefix alone': bearer(prefix),
    'an empty secret': bearer(`${prefix}.`),
    'a known prefix with a wrong secret': bearer(`${prefix}.${secret.split('').toReversed().join('')}`),
    'an unknown prefix': bearer(`vk_${'a'.repeat(12)}.${secret}`),
    'a token in another header': [`X-API-Key: ${raw}`, `Cookie: session=${raw}`],
  };
}

/** All scopes but these. */
export function allBut(...some: readonly Scope[]): Scope[] {
  return scopes.filter((other) => !some.includes(other));
}
