/** A chat or paging service on loopback: keeps what it receives, and answers as told. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

export type ChatCall = {
  /** `POST /path?query` */
  readonly call: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

export type FakeChatApi = {
  readonly origin: string;
  readonly calls: ChatCall[];
  /** Responses instead of 200, the first for the next request. */
  readonly answers: ((response: ServerResponse) => void)[];
};

/** Starts a service. It stops when the test ends. */
export async function fakeChatApi(t: Pick<TestContext, 'after'>): Promise<FakeChatApi> {
  const calls: ChatCall[] = [];
  const answers: FakeChatApi['answers'] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    calls.push({ call: `${request.method} ${request.url}`, headers: request.headers, body });
    const answer = answers.shift();
    if (answer === undefined) response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    else answer(response);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { origin: `http://127.0.0.1:${port}`, calls, answers };
}

/** A JSON response. */
export function jsonAnswer(code: number, body: unknown, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}
