/** A relay between the client installer and the vault that forwards requests or sends responses of the test. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TestContext } from 'node:test';

export type Answer =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Buffer;
    }
  /** Sends half of the announced body. */
  | 'truncated'
  /** Sends nothing and keeps the connection open. */
  | 'hanging'
  /** Forwards the request. */
  | undefined;

export type Seen = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
};

export type Relay = {
  readonly url: string;
  /** The requests so far. */
  readonly seen: Seen[];
  /** Chooses the response to each request. */
  answer: (path: string) => Answer | Promise<Answer>;
  /** Serves HTTPS with another certificate from now on; only with `tls`. */
  readonly secure: (tls: Tls) => void;
};

type Tls = { readonly cert: string; readonly key: string };

/**
 * With `tls` it serves HTTPS with this certificate. The vault's address is read at each request, because the vault may
 * start after the relay. The relay stops when the test ends.
 */
export async function relay(
  t: Pick<TestContext, 'after'>,
  vaultUrl: () => string,
  tls?: Tls,
): Promise<Relay> {
  const seen: Seen[] = [];
  const self: Pick<Relay, 'seen' | 'answer'> = { seen, answer: () => undefined };
  const listener = async (request: IncomingMessage, response: ServerResponse) => {
    const path = request.url ?? '';
    const method = request.method ?? '';
    const sent = Buffer.concat(await request.toArray());
    seen.push({ method, path, headers: request.headers, body: sent });
    const answer = await self.answer(path);
    if (answer === 'hanging') return;
    if (typeof answer === 'object') {
      response.writeHead(answer.status, answer.headers).end(answer.body ?? '');
      return;
    }
    const { host: _, connection: __, ...headers } = request.headers;
    const passed = await fetch(new URL(path, vaultUrl()), {
      method,
      headers: headers as Record<string, string>,
      body: sent.length === 0 ? null : sent,
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
  const secured = tls && createTlsServer(tls, listener);
  const server = secured ?? createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const scheme = tls === undefined ? 'http' : 'https';
  return Object.assign(self, {
    url: `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`,
    secure: (next: Tls) => secured?.setSecureContext(next),
  });
}
