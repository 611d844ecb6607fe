/**
 * An HTTP server on loopback in the test process, on which the fakes of APIs are built: it records requests and can
 * simulate every error between a vault and that API.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Outbound } from '../../../src/net/outbound-http.ts';
import { loopbackOutbound } from '../loopback-guard.ts';

export type FakeRequest = {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The whole URL with host and query, which signatures cover. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export type FakeReply = {
  readonly status: number;
  /** The reason phrase behind the status; by default that of the status. */
  readonly reason?: string;
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

/** Returns undefined for an unknown method and path. */
export type FakeHandler = (request: FakeRequest) => FakeReply | undefined;

type Interruption = {
  /** Without a reply, the request is left without a response. */
  readonly reply: FakeReply | undefined;
  readonly when: (request: FakeRequest) => boolean;
  readonly onArrival: () => void;
};

export class FakeServer {
  readonly requests: FakeRequest[] = [];
  /** The bodies of all responses. */
  readonly responses: string[] = [];
  /** Its URL for the vault: the address here, or the origin that it replaces. */
  url = '';
  #address = '';
  readonly #interruptions: Interruption[] = [];
  #server = createServer();
  handler: FakeHandler = () => undefined;

  /**
   * Starts listening, with a certificate for HTTPS. With an origin, `outbound` redirects requests for it to this
   * server.
   */
  async listen(origin?: string, tls?: { readonly cert: string; readonly key: string }): Promise<void> {
    const listener: RequestListener = (request, response) => {
      void this.#answer(request).then((reply) => {
        if (reply === undefined) return;
        const { status, reason, json, text, headers } = reply;
        const body = text ?? (json === undefined ? '' : JSON.stringify(json));
        this.responses.push(body);
        const type = text === undefined ? 'application/json' : 'text/plain';
        if (reason !== undefined) response.statusMessage = reason;
        response.writeHead(status, { 'Content-Type': type, ...headers }).end(body);
      });
    };
    this.#server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener);
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    const scheme = tls === undefined ? 'http' : 'https';
    this.#address = `${scheme}://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    this.url = origin ?? this.#address;
  }

  /** The real HTTP client, with the origin redirected to this server. */
  readonly outbound: Outbound = (request) => {
    const { origin, host } = new URL(request.url);
    if (origin !== this.url) return loopbackOutbound(request);
    const url = `${this.#address}${request.url.slice(origin.length)}`;
    return loopbackOutbound({ ...request, url, headers: { ...request.headers, Host: host } });
  };

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, 'close');
  }

  /** Responds to the next matching request instead of the API, once. */
  interrupt(reply: FakeReply, when: (request: FakeRequest) => boolean = () => true): void {
    this.#interruptions.push({ reply, when, onArrival: () => undefined });
  }

  /** Leaves the next matching request without a response. Resolves when it has arrived. */
  hang(when: (request: FakeRequest) => boolean): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#interruptions.push({ reply: undefined, when, onArrival: resolve });
    return promise;
  }

  /** Removes all interruptions. */
  calm(): void {
    this.#interruptions.length = 0;
  }

  async #answer(incoming: IncomingMessage): Promise<FakeReply | undefined> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
    const url = new URL(incoming.url ?? '/', this.url);
    const request: FakeRequest = {
      method: incoming.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      url: `${this.url}${incoming.url}`,
      headers: Object.fromEntries(
        Object.entries(incoming.headersDistinct).map(([name, values]) => [name, (values ?? []).join(', ')]),
      ),
      body: Buffer.concat(chunks).toString(),
    };
    this.requests.push(request);
    const index = this.#interruptions.findIndex(({ when }) => when(request));
    const [interruption] = index === -1 ? [] : this.#interruptions.splice(index, 1);
    if (interruption !== undefined) {
      interruption.onArrival();
      return interruption.reply;
    }
    return this.handler(request) ?? { status: 404, json: {} };
  }
}
