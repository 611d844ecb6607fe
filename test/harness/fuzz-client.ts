/** Sends what tests of hostile input make up, as it is, and takes the answer or gives up after a bound. */
import { Agent, type IncomingMessage, request } from 'node:http';
import type { TestContext } from 'node:test';
import type { Answer } from './http-api-checker.ts';

export type WireRequest = {
  readonly method: string;
  /** Goes into the request line as it is. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Buffer | undefined;
};

/** Nothing that a server answers takes longer, on a busy machine either. */
const bound = 20_000;

/** A client with connections that are kept, which end with the test. Streams are read for their first piece only. */
export function wireClient(t: Pick<TestContext, 'after'>, url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  t.after(() => agent.destroy());
  const { hostname, port } = new URL(url);
  return async (wire: WireRequest): Promise<Answer> => {
    const { method, target, body } = wire;
    // For GET, Node's client says nothing of a body that it sends.
    const framed = body === undefined || wire.headers['Transfer-Encoding'] !== undefined;
    const headers = framed ? wire.headers : { ...wire.headers, 'Content-Length': String(body.length) };
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const signal = AbortSignal.timeout(bound);
    const sent = request({ agent, hostname, port, method, path: target, headers, signal }, (response) => {
      readAnswer(response).then(
        (text) =>
          resolve({
            method,
            target,
            status: response.statusCode ?? 0,
            headers: headersOf(response),
            body: text,
          }),
        reject,
      );
    });
    sent.once('error', (error) => reject(signal.aborted ? new Error(`no answer in ${bound} ms`) : error));
    sent.end(body);
    return promise;
  };
}

async function readAnswer(response: IncomingMessage): Promise<string> {
  const isEndless = response.headers['content-type'] === 'text/event-stream';
  let text = '';
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += piece;
    // Leaving the loop closes the connection, as a window that is closed does.
    if (isEndless) break;
  }
  return text;
}

function headersOf({ rawHeaders }: IncomingMessage): Headers {
  const headers = new Headers();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2)
    headers.append(rawHeaders[at] ?? '', rawHeaders[at + 1] ?? '');
  return headers;
}
