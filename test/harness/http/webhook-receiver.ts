/** A webhook receiver, written from the Standard Webhooks specification alone. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type RequestListener, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { encodePem } from '../../../src/crypto/pem.ts';
import { identifier, makeChain, makeLeaf } from '../ca/private-chain.ts';

export type Received = {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly json: {
    readonly id: string;
    readonly type: string;
    readonly timestamp: string;
    readonly subject: string;
    readonly text: string;
    readonly data: Record<string, unknown>;
  };
};

export type WebhookReceiver = {
  readonly url: string;
  readonly received: Received[];
  /** Responses instead of 204, the first for the next request. */
  readonly answers: ((response: ServerResponse) => void)[];
  /** PEM of the root, with HTTPS. */
  readonly ca: string;
};

/** Starts a receiver. It stops when the test ends. */
export async function webhookReceiver(
  t: Pick<TestContext, 'after'>,
  { names }: { readonly names?: readonly string[] } = {},
): Promise<WebhookReceiver> {
  const received: Received[] = [];
  const answers: ((response: ServerResponse) => void)[] = [];
  const listener: RequestListener = async (request, response) => {
    const body = await text(request);
    received.push({ headers: request.headers, body, json: JSON.parse(body) as Received['json'] });
    const answer = answers.shift();
    if (answer === undefined) response.writeHead(204).end();
    else answer(response);
  };
  const { server, ca } = await serverFor(names, listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  const scheme = names === undefined ? 'http' : 'https';
  return { url: `${scheme}://127.0.0.1:${port}/hook?token=t0ken`, received, answers, ca };
}

async function serverFor(names: readonly string[] | undefined, listener: RequestListener) {
  if (names === undefined) return { server: createServer(listener), ca: '' };
  const chain = await makeChain();
  const leaf = await makeLeaf(chain.intermediate, { identifiers: names.map(identifier) });
  const pem = (der: Buffer) => encodePem('CERTIFICATE', der);
  const files = {
    cert: `${pem(leaf.certificate)}${pem(chain.intermediate.certificate)}`,
    key: encodePem('PRIVATE KEY', leaf.privateKey.expose()),
  };
  return { server: createSecureServer(files, listener), ca: pem(chain.root.certificate) };
}

/** A response with a status and optional headers. */
export function status(code: number, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    response.writeHead(code, headers).end("what receivers say is nobody's business");
  };
}

/** Whether the signature is valid and not older than five minutes at `now` (UTC milliseconds). */
export function isSignedWith(secret: string, { headers, body }: Received, now: number): boolean {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64');
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = headers;
  if (Math.abs(now / 1000 - Number(timestamp)) > 300) return false;
  const right = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest();
  return String(signatures)
    .split(' ')
    .some((one) => {
      const given = Buffer.from(one.replace(/^v1,/, ''), 'base64');
      return given.length === right.length && timingSafeEqual(given, right);
    });
}
