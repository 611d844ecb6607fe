/** The real HTTP server on a free loopback port, over a test's vault. */
import type { TestContext } from 'node:test';
import { Authenticator } from '../../src/domain/authentication.ts';
import { Downloads } from '../../src/domain/downloads.ts';
import { startServer } from '../../src/http/server.ts';
import type { ServerContext } from '../../src/http/server-context.ts';
import { routes } from './all-routes.ts';
import { type TestVault, testVault } from './test-vault.ts';

export type TestServer = TestVault & {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  /** Requests a path; `key` is sent as bearer token. */
  readonly get: (path: string, key?: string, init?: RequestInit) => Promise<Response>;
  readonly stop: (patience?: number) => Promise<void>;
};

/** Starts the server and stops it when the test has ended. No jobs run beside it. */
export async function testServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof testVault>[1] & {
    publicUrl?: string;
    /** Names of people with a session, by its token; without it nobody can have one. */
    administrators?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestServer> {
  const opened = await testVault(t, options);
  const { vault } = opened;
  const context = {
    vault,
    authenticator: new Authenticator(vault),
    downloads: new Downloads(vault),
    version: '0.0.0-test',
    publicUrl: options.publicUrl,
    ...(options.administrators !== undefined && { findSession: sessionsOf(options.administrators) }),
  };
  const server = await startServer(context, routes, { host: '127.0.0.1', port: 0 });
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
  return { ...opened, url: server.url, get, stop };
}

function sessionsOf(
  administrators: Readonly<Record<string, string>>,
): NonNullable<ServerContext['findSession']> {
  return async (token) => {
    const name = administrators[token];
    return name === undefined ? undefined : { kind: 'administrator', name };
  };
}
