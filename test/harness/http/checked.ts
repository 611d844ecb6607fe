/** The test server, with every response checked against openapi.json. */
import type { TestContext } from 'node:test';
import { type ApiDocument, apiChecker } from './api-checker.ts';
import { type RawReply, rawRequest } from './raw.ts';
import { type TestServer, testServer } from './test-server.ts';

export type CheckedServer = TestServer & {
  readonly document: ApiDocument;
  /** Requests exactly this target with exactly these header lines, over a new connection. */
  readonly raw: (method: string, target: string, lines?: readonly string[]) => Promise<RawReply>;
};

/** As `testServer`, but `get` and `raw` throw if a response is not declared. */
export async function checkedServer(
  t: Pick<TestContext, 'after'>,
  options: Parameters<typeof testServer>[1] = {},
): Promise<CheckedServer> {
  const server = await testServer(t, options);
  const document = (await (await server.get('/api/v1/openapi.json')).json()) as ApiDocument;
  const check = apiChecker(document);
  const get: TestServer['get'] = async (path, key, init = {}) => {
    const response = await server.get(path, key, init);
    const { status, headers } = response;
    check({
      method: init.method ?? 'GET',
      target: path,
      status,
      headers,
      body: await response.clone().text(),
    });
    return response;
  };
  const raw: CheckedServer['raw'] = async (method, target, lines) => {
    const reply = await rawRequest(server.url, method, target, lines);
    check({ method, target, ...reply });
    return reply;
  };
  return { ...server, document, get, raw };
}

/** The `code` of a problem. */
export async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { code: string }).code;
}
