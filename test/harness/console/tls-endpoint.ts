/** A TLS server on the loopback address that serves a version of a certificate, for endpoints to check. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer } from 'node:tls';
import type { Person, Visit } from './visit.ts';

export type TlsEndpoint = {
  /** `127.0.0.1:port` */
  readonly address: string;
  /** Serves the current version of the certificate from now on. */
  readonly serve: (certificate: string) => Promise<void>;
  /** Refuses connections from now on. */
  readonly stop: () => void;
};

/** Starts a server that serves the current version of the certificate; it stops when the test ends. */
export async function tlsEndpoint(
  t: TestContext,
  { url }: Pick<Visit, 'url'>,
  { ask }: Pick<Person, 'ask'>,
  certificate: string,
): Promise<TlsEndpoint> {
  const scopes = ['certificates:read', 'private_keys:read'];
  const wanted = { name: 'tls-server', scopes, certificates: ['*'] };
  const { key } = (await ask('POST', '/api-keys', wanted)) as { readonly key: string };
  const file = async (name: string, artifact: string) => {
    const headers = { Authorization: `Bearer ${key}` };
    const response = await fetch(`${url}/api/v1/certificates/${name}/${artifact}`, { headers });
    assert.equal(response.status, 200, artifact);
    return response.text();
  };
  const contextOf = async (name: string) => ({
    cert: await file(name, 'fullchain.crt'),
    key: await file(name, 'private.key'),
  });
  const server = createServer(await contextOf(certificate), (socket) => {
    socket.on('error', () => {
      // The vault closes the connection after the handshake.
    });
    socket.end();
  });
  t.after(() => server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    serve: async (name) => server.setSecureContext(await contextOf(name)),
    stop: () => server.close(),
  };
}
