/** An HTTPS server with API keys that are bound to client certificates of its private CA. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeCertificate, makeKey, type TestKey } from './fixtures.ts';
import { type Visit, visit } from './https-client.ts';
import { httpsServer, twoLooks } from './https-fixtures.ts';
import type { TestServer, testServer } from './test-server.ts';

/** A certificate and its private key, as PEM, in the terms of node:tls. */
export type Pair = { readonly cert: string; readonly key: string };

export type BoundServer = {
  readonly server: TestServer;
  readonly vault: Vault;
  /** Bound to the certificate `web-1`. */
  readonly bound: TestKey;
  /** Bound to none, for everything. */
  readonly free: TestKey;
  /** The certificate of this name with its key, by default the current version. */
  readonly pairOf: (name: string, version?: number) => Promise<Pair>;
  /** Downloads a private key over a new connection, which presents the certificate. */
  readonly ask: (raw: string, pair?: Pair, headers?: Readonly<Record<string, string>>) => Promise<Visit>;
};

/** The download of all these tests. */
export const wanted = '/api/v1/certificates/web/private.key';

/** Serves the certificates `web` and `web-1`, after TLS has begun to request certificates. */
export async function boundServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof testServer>[1] = {},
): Promise<BoundServer> {
  const server = await httpsServer(t, options);
  const { vault } = server;
  await makeCertificate(vault, 'web');
  await makeCertificate(vault, 'web-1', ['web-1.example.test'], { usage: 'client' });
  const free = await makeKey(vault, { name: 'free' });
  const bound = await makeKey(vault, { name: 'bound', certificates: ['web'], client_certificate: 'web-1' });
  await twoLooks(server);
  const ask: BoundServer['ask'] = (raw, pair, headers) =>
    visit(server.url + wanted, { headers: { ...headers, Authorization: `Bearer ${raw}` }, ...pair });
  const pairOf: BoundServer['pairOf'] = async (name, version) => {
    const pinned = version === undefined ? '' : `?version=${version}`;
    const [cert, key] = await Promise.all(
      ['fullchain.crt', 'private.key'].map(async (file) => {
        const url = `${server.url}/api/v1/certificates/${name}/${file}${pinned}`;
        const { status, body } = await visit(url, { headers: { Authorization: `Bearer ${free.raw}` } });
        assert.equal(status, 200, body);
        return body;
      }),
    );
    assert(cert !== undefined && key !== undefined);
    return { cert, key };
  };
  return { server, vault, bound, free, pairOf, ask };
}
