/** A relay between the client installer and the vault that forwards requests or sends responses of the test. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type Answer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** Sends half of the announced body. */
  | 'truncated'
  /** Sends nothing and keeps the connection open. */
  | 'hanging'
  /** Forwards the request. */
  | undefined;

export type Seen = { readonly path: string; readonly headers: IncomingMessage['headers'] };

export type Relay = {
  readonly url: string;
  /** The requests so far. */
  readonly seen: Seen[];
  /** Chooses the response to each request. */
  answer: (path: string) => Answer | Promise<Answer>;
};

/**
 * With `tls` it serves HTTPS with this certificate. The vault's address is read at each request, because the vault may
 * start after the relay. The relay stops when the test ends.
 */
export async function relay(
  t: Pick<TestContext, 'after'>,
  vaultUrl: () => string,
  tls?: { readonly cert: string; readonly key: string },
): Promise<Relay> {
  const seen: Seen[] = [];
  const self: Relay = { url: '', seen, answer: () => undefined };
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    seen.push({ path, headers: request.headers });
    const answer = await self.answer(path);
    if (answer === 'hanging') return;
    if (typeof answer === 'object') {
      response.writeHead(answer.status, answer.headers).end(answer.body ?? '');
      return;
    }
    const { host: _, connection: __, ...headers } = request.headers;
    const passed = await fetch(new URL(path, vaultUrl()), {
      headers: headers as Record<string, string>,
      redirect: 'manual',
    }).catch(() => undefined);
    if (passed === undefined) {
      // Without the vault, drop the connection.
      response.destroy();
      return;
    }
    const body = Buffer.from(await passed.arrayBuffer());
    const { connection: ___, 'keep-alive': ____, ...kept } = Object.fromEntries(passed.headers);
    response.writeHead(passed.status, kept);
    if (answer === 'truncated') {
      response.write(body.subarray(0, body.length / 2));
      response.socket?.end();
    } else response.end(body);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const scheme = tls === undefined ? 'http' : 'https';
  return Object.assign(self, { url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}` });
}
