/** The real HTTP or HTTPS server on a free loopback port, for the vault of a test. */
import type { TestContext } from 'node:test';
import type { Role } from '../../../src/base/role.ts';
import { trustedProxies } from '../../../src/cli/settings/client-settings.ts';
import type { HashCost } from '../../../src/crypto/secrets/password-hash.ts';
import { scopesOfRole } from '../../../src/domain/access/identity.ts';
import type { SessionLimits } from '../../../src/domain/access/sessions.ts';
import type { ProviderSettings } from '../../../src/domain/oidc/provider-settings.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import type { Route } from '../../../src/http/request/route.ts';
import type { ConsoleReply } from '../../../src/http/routes/console-routes.ts';
import type { ConnectionLimits } from '../../../src/http/server/connection-limits.ts';
import { type ListenerContext, serverContext } from '../../../src/http/server/listener-context.ts';
import { startServer } from '../../../src/http/server/server.ts';
import { TlsEndpoint } from '../../../src/http/tls/tls-endpoint.ts';
import type { TlsSource } from '../../../src/http/tls/tls-source.ts';
import { type TestVault, testVault } from '../test-vault.ts';
import type { TestWorld } from '../test-world.ts';
import { routes } from './all-routes.ts';
import { cheapHash } from './sign-in-fixtures.ts';

export type TestServer = TestVault & {
  /** `http://127.0.0.1:PORT`, or `https:` with `tls`. */
  readonly url: string;
  readonly context: ListenerContext;
  /** Requests a path, with `key` as bearer token. */
  readonly get: (path: string, key?: string, init?: RequestInit) => Promise<Response>;
  readonly stop: (patience?: number) => Promise<void>;
};

/** Starts the server, without jobs. It stops when the test ends. */
export async function testServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof testVault<TestWorld>>[1] & {
    publicUrl?: string;
    /** The value of `--acme-terms-of-service`. */
    termsOfService?: string;
    /** The value of `--api-key-rate`. */
    apiKeyRate?: number;
    /** The cost of password hashing; by default minimal. */
    hashCost?: HashCost;
    connectionLimits?: Partial<ConnectionLimits>;
    /** Requests that wait for a new version, at a time. */
    maxWaits?: number;
    /** The value of `--trusted-proxies`. */
    trustedProxies?: string;
    /** Names by session token, instead of real sign-ins. */
    administrators?: Readonly<Record<string, string>>;
    /** Their roles by name; by default admin. */
    roles?: Readonly<Record<string, Role>>;
    /** What their reach is by name; by default everything. */
    reaches?: Readonly<Record<string, readonly string[]>>;
    sessionLimits?: SessionLimits;
    secondApproval?: boolean;
    requireSecondFactor?: boolean;
    oidc?: ProviderSettings;
    /** Routes instead of those of `vault serve`. */
    routes?: readonly Route[];
    /** The files of the console; by default none. */
    pages?: ConsoleReply;
    /** Serves HTTPS with a certificate from this source. */
    tls?: (vault: Vault) => TlsSource;
    handshakeMs?: number;
    /** Replaces the vault for the server. */
    inPlaceOf?: (vault: Vault) => Vault;
  } = {},
): Promise<TestServer> {
  const opened = await testVault<TestWorld>(t, options);
  const vault = options.inPlaceOf?.(opened.vault) ?? opened.vault;
  const { tls: source, handshakeMs, pages, ...contextOptions } = options;
  const endpoint = source && (await TlsEndpoint.open(vault, source(vault)));
  const usual = serverContext(vault, {
    version: '0.0.0-test',
    publicUrl: undefined,
    hashCost: cheapHash,
    tls: () => endpoint?.facts ?? null,
    ...contextOptions,
    trustedProxies: trustedProxies(
      options.trustedProxies === undefined ? undefined : { value: options.trustedProxies, from: 'the test' },
    ),
  });
  const { administrators } = options;
  const context =
    administrators === undefined
      ? usual
      : {
          ...usual,
          findSession: sessionsOf(administrators, options.roles, options.reaches),
          isSessionLive: async () => Object.keys(administrators).length > 0,
        };
  const address = { host: '127.0.0.1', port: 0 };
  const server = await startServer(context, options.routes ?? routes, address, {
    ...(pages && { pages }),
    tls: endpoint && { endpoint, ...(handshakeMs !== undefined && { handshakeMs }) },
  });
  let stopping: Promise<void> | undefined;
  const stop = (patience = 0) => {
    stopping ??= server.stop(patience);
    return stopping;
  };
  t.after(async () => {
    await stop();
  });
  const get = (path: string, key?: string, init: RequestInit = {}) =>
    fetch(new URL(path, server.url), {
      ...init,
      headers: { ...(key !== undefined && { Authorization: `Bearer ${key}` }), ...init.headers },
    });
  return { ...opened, vault, context, url: server.url, get, stop };
}

function sessionsOf(
  administrators: Readonly<Record<string, string>>,
  roles: Readonly<Record<string, Role>> = {},
  reaches: Readonly<Record<string, readonly string[]>> = {},
): ListenerContext['findSession'] {
  return async (token) => {
    const name = administrators[token];
    const role = roles[name ?? ''] ?? 'admin';
    const session = { id: 1, administratorId: 1, createdAt: 0, expiresAt: 0 };
    return name === undefined
      ? undefined
      : {
          kind: 'administrator',
          name,
          role,
          reach: reaches[name] ?? 'any',
          profiles: 'any',
          scopes: new Set(scopesOfRole(role)),
          signIn: 'password',
          hasSecondFactor: false,
          session,
        };
  };
}
