/**
 * An OpenID Connect provider on loopback that a test can make lie: it keeps the protocol, with keys and signatures by
 * jose, except for what the test overrides.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { Secret } from '../../../src/base/secret.ts';
import type { ProviderSettings } from '../../../src/domain/oidc/provider-settings.ts';

export const clientId = 'vault';
export const clientSecret = 'a secret with ~!*() characters';

type Claims = Record<string, unknown>;

export type ScriptedProvider = {
  readonly issuer: string;
  /** Claims of the next ID tokens, in addition to the required ones or in their place; undefined removes one. */
  claims: Claims;
  /** The response of the userinfo endpoint, without sub; undefined if there is no such endpoint. */
  userinfo: Claims | undefined;
  /** Makes the ID token from its claims; by default it is signed with RS256. */
  token: (claims: Claims) => Promise<string>;
  /** Members of the metadata in place of the usual ones. */
  metadata: Claims;
  /** Members of the response that begins a device authorization; undefined if the provider offers none. */
  device: Claims | undefined;
  /** Whether people have confirmed their device authorizations, or the error that the provider returns. */
  deviceState: 'confirmed' | 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token';
  /** Whether each request fails with 500. */
  isDown: boolean;
  readonly requests: string[];
  /** Signs with the key in the JWKS. */
  readonly sign: (claims: Claims, header?: Record<string, string>) => Promise<string>;
  /** A person signs in at this URL: where the provider sends their browser. */
  readonly authorize: (url: string) => URL;
  readonly stop: () => void;
};

/** Starts a provider, which stops when the test ends. `now` is the clock of the vault, which a test may set. */
export async function scriptedProvider(
  t: Pick<TestContext, 'after'>,
  now: () => number,
): Promise<ScriptedProvider> {
  const { publicKey, privateKey } = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(publicKey)), kid: 'one', use: 'sig', alg: 'RS256' };
  const codes = new Map<string, URLSearchParams>();
  const deviceCodes = new Set<string>();
  const sign: ScriptedProvider['sign'] = (claims, header = {}) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: 'one', ...header }).sign(privateKey);
  const provider: { -readonly [K in keyof ScriptedProvider]: ScriptedProvider[K] } = {
    issuer: '',
    claims: {},
    userinfo: undefined,
    token: (claims) => sign(claims),
    metadata: {},
    device: {},
    deviceState: 'authorization_pending',
    isDown: false,
    requests: [],
    sign,
    authorize: (url) => {
      const { searchParams } = new URL(url);
      const code = `code-${codes.size}`;
      codes.set(code, searchParams);
      const back = new URL(searchParams.get('redirect_uri') ?? '');
      back.search = `${new URLSearchParams({ code, state: searchParams.get('state') ?? '', iss: provider.issuer })}`;
      return back;
    },
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  const answer = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
    const { issuer } = provider;
    const path = new URL(request.url ?? '', issuer).pathname;
    provider.requests.push(`${request.method} ${path}`);
    if (provider.isDown) return [500, { error: 'server_error' }];
    switch (path) {
      case '/.well-known/openid-configuration':
        return [
          200,
          {
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            jwks_uri: `${issuer}/jwks`,
            ...(provider.device && { device_authorization_endpoint: `${issuer}/device` }),
            ...(provider.userinfo && { userinfo_endpoint: `${issuer}/userinfo` }),
            response_types_supported: ['code'],
            subject_types_supported: ['public'],
            id_token_signing_alg_values_supported: ['RS256'],
            authorization_response_iss_parameter_supported: true,
            ...provider.metadata,
          },
        ];
      case '/jwks':
        return [200, { keys: [jwk] }];
      case '/userinfo':
        return [200, { sub: 'subject-1', ...provider.userinfo }];
      case '/device':
        return deviceAnswer(provider, deviceCodes, new URLSearchParams(await textOf(request)), request);
      case '/token': {
        // As it is when the request begins, for tests that change it after they have seen the request.
        const { deviceState } = provider;
        return tokenAnswer(provider, codes, new URLSearchParams(await textOf(request)), {
          ...{ request, deviceCodes, deviceState },
          now: Math.floor(now() / 1000),
        });
      }
      default:
        return [404, {}];
    }
  };
  const server = createServer((request, response) => {
    // The person is signed in at the provider.
    if (request.url?.startsWith('/authorize?')) {
      const back = provider.authorize(new URL(request.url, provider.issuer).href);
      response.writeHead(302, { Location: back.href }).end();
      return;
    }
    answer(request).then(([status, body]) => {
      response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(provider.stop);
  provider.issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return provider;
}

function deviceAnswer(
  provider: ScriptedProvider,
  deviceCodes: Set<string>,
  body: URLSearchParams,
  request: IncomingMessage,
): [status: number, body: unknown] {
  if (!isClient(body, request)) return [401, { error: 'invalid_client' }];
  assert.equal(body.get('scope'), 'openid profile email');
  const code = `device-code-${deviceCodes.size}`;
  deviceCodes.add(code);
  const user = `ABCD-EFG${deviceCodes.size}`;
  return [
    200,
    {
      device_code: code,
      user_code: user,
      verification_uri: `${provider.issuer}/activate`,
      verification_uri_complete: `${provider.issuer}/activate?user_code=${user}`,
      expires_in: 600,
      interval: 5,
      ...provider.device,
    },
  ];
}

/** Whether the request is from the vault. */
function isClient(body: URLSearchParams, { headers }: IncomingMessage): boolean {
  return (body.get('client_secret') ?? passwordIn(headers.authorization ?? '')) === clientSecret;
}

async function tokenAnswer(
  provider: ScriptedProvider,
  codes: Map<string, URLSearchParams>,
  body: URLSearchParams,
  {
    request,
    deviceCodes,
    deviceState,
    now,
  }: {
    readonly request: IncomingMessage;
    readonly deviceCodes: Set<string>;
    readonly deviceState: ScriptedProvider['deviceState'];
    readonly now: number;
  },
): Promise<[status: number, body: unknown]> {
  if (!isClient(body, request)) return [401, { error: 'invalid_client' }];
  if (body.get('grant_type') === 'urn:ietf:params:oauth:grant-type:device_code') {
    if (!deviceCodes.has(body.get('device_code') ?? '')) return [400, { error: 'invalid_grant' }];
    if (deviceState !== 'confirmed') return [400, { error: deviceState }];
    return tokensOf(provider, now, undefined);
  }
  const code = body.get('code') ?? '';
  const asked = codes.get(code);
  codes.delete(code);
  const verifier = createHash('sha256')
    .update(body.get('code_verifier') ?? '')
    .digest('base64url');
  if (asked === undefined || verifier !== asked.get('code_challenge'))
    return [400, { error: 'invalid_grant' }];
  assert.equal(body.get('redirect_uri'), asked.get('redirect_uri'));
  return tokensOf(provider, now, asked.get('nonce') ?? undefined);
}

async function tokensOf(
  provider: ScriptedProvider,
  now: number,
  nonce: string | undefined,
): Promise<[status: number, body: unknown]> {
  const claims: Claims = {
    iss: provider.issuer,
    sub: 'subject-1',
    aud: clientId,
    iat: now,
    exp: now + 3600,
    nonce,
    preferred_username: 'alice',
    groups: ['vault-admins'],
    ...provider.claims,
  };
  const token = { access_token: 'access', token_type: 'Bearer', expires_in: 60 };
  return [200, { ...token, id_token: await provider.token(JSON.parse(JSON.stringify(claims))) }];
}

/** RFC 6749 §2.3.1: both parts are form-encoded. */
function passwordIn(authorization: string): string | null {
  const [, encoded = ''] = authorization.split(' ');
  const [, password = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  return new URLSearchParams(`password=${password}`).get('password');
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** The settings of a vault for this provider: the group vault-admins is admin, and so on. */
export function settingsOf(
  { issuer }: Pick<ScriptedProvider, 'issuer'>,
  more: Partial<ProviderSettings> = {},
): ProviderSettings {
  return {
    issuer,
    clientId,
    clientSecret: new Secret(clientSecret),
    scope: 'openid profile email',
    ca: undefined,
    publicUrl: 'https://vault.example.test',
    roles: {
      claim: 'groups',
      values: { viewer: ['vault-viewers'], operator: ['vault-operators'], admin: ['vault-admins'] },
      byDefault: undefined,
    },
    ...more,
  };
}
