/**
 * A proxy in front of Pebble that looks like the CA itself. It counts requests, can hold a request or its response
 * until the test releases it, and can hide renewal information. Pebble builds its URLs from the request's host, so all
 * of them point to the proxy.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, type RequestOptions, request } from 'node:https';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { Pebble } from '../ca/pebble.ts';
import { writeHttpsFiles } from '../ca/pebble-files.ts';
import { tempDir } from '../temp-dir.ts';

export type AcmeFront = {
  readonly directoryUrl: string;
  readonly caFile: string;
  /** Every request so far, as `POST /order-plz`. */
  readonly requests: () => readonly string[];
  /**
   * Holds the next request whose path matches: `request` before the CA receives it, `answer` after the CA processed it
   * but before the client gets the response. A request whose client disconnected meanwhile is dropped.
   */
  readonly hold: (what: 'request' | 'answer', path: RegExp) => Held;
};

export type Held = {
  /** Resolves when the request has arrived and is held. */
  readonly reached: Promise<void>;
  readonly release: () => void;
};

export type AcmeFrontOptions = {
  /** Hides renewal information from the directory, as in older CAs. */
  readonly hidesRenewalInfo?: boolean | undefined;
};

type Rule = {
  readonly what: 'request' | 'answer';
  readonly path: RegExp;
  readonly reached: () => void;
  readonly released: Promise<void>;
};

type Answer = {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
};

/** Starts a proxy on a free loopback port. It stops when the test ends. */
export async function acmeFront(
  t: Pick<TestContext, 'after'>,
  ca: Pick<Pebble, 'directoryUrl' | 'caPem'>,
  { hidesRenewalInfo = false }: AcmeFrontOptions = {},
): Promise<AcmeFront> {
  const { caFile } = await writeHttpsFiles(tempDir(t));
  const [cert, key] = ['server.pem', 'server.key'].map((file) => readFileSync(join(dirname(caFile), file)));
  const { host: upstream } = new URL(ca.directoryUrl);
  const agent = new Agent({ keepAlive: true, ca: ca.caPem });
  const rules = new Set<Rule>();
  const requests: string[] = [];
  const wait = async (what: Rule['what'], path: string) => {
    const rule = [...rules].find((one) => one.what === what && one.path.test(path));
    if (rule === undefined) return;
    rules.delete(rule);
    rule.reached();
    await rule.released;
  };
  const answer = async (asked: IncomingMessage, reply: ServerResponse) => {
    const { method = '', url: path = '', headers } = asked;
    requests.push(`${method} ${path}`);
    const body = await buffer(asked);
    await wait('request', path);
    if (asked.socket.destroyed) return;
    const got = await forward(`https://${upstream}${path}`, { method, headers, agent }, body);
    await wait('answer', path);
    const text = hidesRenewalInfo && path === '/dir' ? withoutRenewalInfo(got.body) : got.body;
    reply.writeHead(got.status, { ...got.headers, 'content-length': text.length });
    reply.end(method === 'HEAD' ? undefined : text);
  };
  const server = createServer({ cert, key, keepAliveTimeout: 60_000 }, (asked, reply) => {
    answer(asked, reply).catch(() => asked.socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error(`no port: ${address}`);
  return {
    directoryUrl: `https://127.0.0.1:${address.port}/dir`,
    caFile,
    requests: () => requests,
    hold: (what, path) => {
      const reached = Promise.withResolvers<void>();
      const released = Promise.withResolvers<void>();
      rules.add({ what, path, reached: reached.resolve, released: released.promise });
      return { reached: reached.promise, release: released.resolve };
    },
  };
}

async function forward(url: string, options: RequestOptions, body: Buffer): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, options, resolve).on('error', reject).end(body);
  const response = await promise;
  const { 'transfer-encoding': _, ...headers } = response.headers;
  return { status: response.statusCode ?? 0, headers, body: await buffer(response) };
}

function withoutRenewalInfo(body: Buffer): Buffer {
  const { renewalInfo: _, ...directory } = JSON.parse(body.toString()) as Record<string, unknown>;
  return Buffer.from(JSON.stringify(directory));
}
