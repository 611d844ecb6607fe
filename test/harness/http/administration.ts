/** An administrator with a session who sends JSON requests. Every response is checked with the API document. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { alice } from './acme-fixtures.ts';
import { type CheckedServer, checkedServer } from './checked.ts';

export type MessageText = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed JSON body; undefined if there is none. */
  readonly json: unknown;
};

export type Administration = {
  readonly server: CheckedServer;
  /** Sends a request as alice, with an optional JSON body. */
  readonly ask: (method: string, path: string, body?: unknown) => Promise<MessageText>;
  /** As `ask`; the response must have this status. */
  readonly expect: <T = Record<string, unknown>>(
    status: number,
    method: string,
    path: string,
    body?: unknown,
  ) => Promise<T>;
  /** All responses so far, headers and bodies. */
  readonly said: () => string;
};

/** A server on which alice is signed in. */
export async function administration(
  t: TestContext,
  options: Parameters<typeof checkedServer>[1] = {},
): Promise<Administration> {
  const server = await checkedServer(t, { administrators: alice.administrators, ...options });
  const answers: string[] = [];
  const ask: Administration['ask'] = async (method, path, body) => {
    const headers = {
      ...alice.init.headers,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    };
    const response = await server.get(path, undefined, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    answers.push(JSON.stringify([...response.headers]), text);
    const isJson = /json$/.test(response.headers.get('Content-Type') ?? '');
    return {
      status: response.status,
      headers: response.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    };
  };
  const expect: Administration['expect'] = async <T>(
    status: number,
    method: string,
    path: string,
    body?: unknown,
  ) => {
    const told = await ask(method, path, body);
    assert.equal(told.status, status, `${method} ${path}: ${told.text}`);
    return told.json as T;
  };
  return { server, ask, expect, said: () => answers.join('\n') };
}

/** The elements of all pages of a list, and the number of pages. */
export async function allPages<T>(
  { server, ask }: Administration,
  path: string,
): Promise<{ readonly all: T[]; readonly pages: number }> {
  const all: T[] = [];
  let next: string | undefined = path;
  let pages = 0;
  while (next !== undefined) {
    pages += 1;
    assert(pages < 100, 'more than 100 pages');
    const told: MessageText = await ask('GET', next);
    assert.equal(told.status, 200, told.text);
    all.push(...(told.json as T[]));
    next = /^<([^>]+)>; rel="next"$/.exec(told.headers.get('Link') ?? '')?.[1]?.slice(server.url.length);
  }
  return { all, pages };
}
