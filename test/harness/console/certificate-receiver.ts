/** A receiver of certificates for deploy targets of type webhook, on the loopback address. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type CertificateReceiver = {
  readonly url: string;
  /** Settings of a target of type webhook, which delivers here. */
  readonly settings: { readonly url: string; readonly secret: string };
  /** The certificates of accepted requests with their versions, such as `shop 1`, once each. */
  readonly received: () => readonly string[];
  /** The status of responses from now on; `silent` lets requests wait until another status is set. */
  readonly respondWith: (status: number | 'silent') => void;
};

/** Starts a receiver that accepts certificates; it stops when the test ends. */
export async function certificateReceiver(t: TestContext): Promise<CertificateReceiver> {
  const received = new Set<string>();
  const waiting: (() => void)[] = [];
  let status: number | 'silent' = 204;
  const server = createServer(async (request, response) => {
    const { certificate, version } = JSON.parse(await bodyOf(request)) as Record<string, unknown>;
    const respond = () => {
      if (status === 'silent') return waiting.push(respond);
      if (status === 204) received.add(`${certificate} ${version}`);
      response.statusCode = status;
      return response.end();
    };
    respond();
  });
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    settings: { url, secret: `whsec_${Buffer.alloc(32, 'a secret of the target').toString('base64')}` },
    received: () => [...received],
    respondWith: (next) => {
      status = next;
      for (const respond of waiting.splice(0)) respond();
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = '';
  for await (const chunk of request.setEncoding('utf8') as AsyncIterable<string>) body += chunk;
  return body;
}
