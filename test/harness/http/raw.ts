/** Raw HTTP: requests that no client library would send, and the bytes of the responses. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export type RawReply = {
  readonly status: number;
  readonly headers: Headers;
  readonly body: string;
};

/** Opens a connection to the server. */
export async function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  return socket;
}

/** Sends the bytes and returns everything received until the server closes the connection. */
export async function converse(url: string, bytes: string): Promise<string> {
  const socket = await open(url);
  socket.write(bytes, 'latin1');
  return readToEnd(socket);
}

/** Reads from the connection until it is closed or reset. */
export async function readToEnd(socket: Socket): Promise<string> {
  let all = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    all += chunk;
  });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  socket
    .once('close', () => resolve())
    .on('error', () => {
      // `close` follows a reset.
    });
  await closed;
  return all;
}

/** The text of a request without a body; `lines` are header lines besides Host. */
export function requestText(method: string, target: string, lines: readonly string[] = []): string {
  return [`${method} ${target} HTTP/1.1`, 'Host: vault.test', ...lines, '', ''].join('\r\n');
}

/** Sends one request over a new connection. */
export async function rawRequest(
  url: string,
  method: string,
  target: string,
  lines: readonly string[] = [],
): Promise<RawReply> {
  return parseReply(await converse(url, requestText(method, target, ['Connection: close', ...lines])));
}

/** Parses the first response in the received bytes. */
export function parseReply(text: string): RawReply {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = new Headers();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return {
    status: Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine)?.[1]),
    headers,
    body: text.slice(end + 4),
  };
}
