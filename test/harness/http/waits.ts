/** Requests that wait for a new version, in tests with a clock of their own. */
import type { TestContext } from 'node:test';
import { eventually } from '../eventually.ts';
import { type CheckedServer, checkedServer } from './checked.ts';
import { makeCertificate, makeKey, type TestKey } from './fixtures.ts';
import type { TestServer } from './test-server.ts';

export const waitedFile = '/api/v1/certificates/www/private.key';

/** Resolves when exactly so many requests wait. */
export async function waitingAre(server: Pick<TestServer, 'context'>, count: number): Promise<void> {
  const { waits } = server.context;
  await eventually(
    () => `${count} waiting requests, not ${waits.size}`,
    () => waits.size === count,
  );
}

export type WaitedServer = {
  readonly server: CheckedServer;
  readonly key: TestKey;
  /** The entity tag of this path. */
  readonly tagOf: (path: string, headers?: Readonly<Record<string, string>>) => Promise<string>;
  /** Requests the path, by default with `wait=60`, of a client that has the current version. */
  readonly wait: (
    path?: string,
    options?: { readonly key?: string; readonly headers?: Readonly<Record<string, string>> },
  ) => Promise<Response>;
  /** Lets the vault look for new versions, and resolves when it has looked and `left` requests wait. */
  readonly look: (left?: number) => Promise<void>;
};

/** A server with the certificate `www` and an API key with all scopes. */
export async function waitedServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof checkedServer>[1] = {},
): Promise<WaitedServer> {
  const server = await checkedServer(t, options);
  await makeCertificate(server.vault, 'www');
  const key = await makeKey(server.vault, { name: 'waiting' });
  const tagOf: WaitedServer['tagOf'] = async (path, headers = {}) => {
    const response = await server.get(path, key.raw, { method: 'HEAD', headers });
    return response.headers.get('ETag') ?? '';
  };
  return {
    server,
    key,
    tagOf,
    wait: async (path = `${waitedFile}?wait=60`, { key: raw = key.raw, headers = {} } = {}) => {
      const tag = await tagOf(path.replace(/\?.*/, ''), headers);
      return server.get(path, raw, { headers: { ...headers, 'If-None-Match': tag } });
    },
    look: async (left = 1) => {
      server.world.advance(1000);
      await server.world.sleeping(1);
      await waitingAre(server, left);
    },
  };
}
