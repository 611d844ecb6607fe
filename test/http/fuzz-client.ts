/** Sends generated requests unchanged, and waits for the response for a limited time. */
import { Agent, type IncomingMessage, request } from 'node:http';
import type { TestContext } from 'node:test';
import type { Answer } from '../harness/http/api-checker.ts';

export type WireRequest = {
  readonly method: string;
  /** Written to the request line unchanged. */
  readonly target: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Buffer | undefined;
};

/** No response takes longer, even on a busy machine. */
const bound = 20_000;

/** A client with persistent connections, which close when the test ends. Reads only the first chunk of streams. */
export function wireClient(t: Pick<TestContext, 'after'>, url: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  t.after(() => agent.destroy());
  const { hostname, port } = new URL(url);
  return async (wire: WireRequest): Promise<Answer> => {
    const { method, target, body } = wire;
    // For GET, Node's client sends no header for the body.
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
    sent.once('error', (error) =>
      reject(signal.aborted ? new Error(`no response within ${bound} ms`) : error),
    );
    sent.end(body);
    return promise;
  };
}

async function readAnswer(response: IncomingMessage): Promise<string> {
  const isEndless = response.headers['content-type'] === 'text/event-stream';
  let text = '';
  for await (const piece of response.setEncoding('utf8') as AsyncIterable<string>) {
    text += piece;
    // Leaving the loop closes the connection, like closing a browser window.
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
