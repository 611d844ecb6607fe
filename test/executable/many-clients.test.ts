/** Five hundred well-behaved clients at once, against the built vault with its usual limits: none of them meets one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { test } from 'node:test';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const clients = 500;

type Answer = { readonly status: number | undefined; readonly etag: string; readonly body: string };

async function ask(url: string, key: string, agent: http.Agent, etag = ''): Promise<Answer> {
  const { request } = url.startsWith('https:') ? https : http;
  const sent = request(url, {
    agent,
    rejectUnauthorized: false,
    headers: { Authorization: `Bearer ${key}`, ...(etag !== '' && { 'If-None-Match': etag }) },
  });
  sent.end();
  const [reply] = (await once(sent, 'response')) as [http.IncomingMessage];
  let body = '';
  for await (const chunk of reply.setEncoding('utf8')) body += chunk;
  return { status: reply.statusCode, etag: reply.headers.etag ?? '', body };
}

const listeners = { http: [], https: ['--tls-certificate', 'vault'] };

for (const [scheme, args] of Object.entries(listeners)) {
  test(`500 clients with one API key and one address are all served over ${scheme}, on reused and new connections`, async (t) => {
    const dir = tempDir(t);
    const common = ['--data-dir', dir];
    await vault(['certificate', 'create', '--name', 'web', '--domain', 'web.test', ...common]);
    const rights = ['--scope=certificates:read', '--scope=private_keys:read', '--certificate=web'];
    const { stdout } = await vault(['api-key', 'create', '--name', 'fleet', ...rights, ...common]);
    const { url, log } = await serve(t, dir, { args });
    const key = stdout.trim();
    const target = (file: string) => `${url}/api/v1/certificates/web/${file}`;
    const statuses = new Map<number | undefined, number>();
    const count = ({ status }: Answer) => statuses.set(status, (statuses.get(status) ?? 0) + 1);
    await Promise.all(
      Array.from({ length: clients }, async (_, index) => {
        const { Agent } = scheme === 'https' ? https : http;
        const agent = new Agent({ keepAlive: index % 2 === 0, maxSockets: 1, maxCachedSessions: 0 });
        const certificate = await ask(target('fullchain.crt'), key, agent);
        count(certificate);
        assert.match(certificate.body, /BEGIN CERTIFICATE/);
        const privateKey = await ask(target('private.key'), key, agent);
        count(privateKey);
        assert.match(privateKey.body, /BEGIN PRIVATE KEY/);
        // It polls, as clients do.
        for (let round = 0; round < 2; round += 1) {
          count(await ask(target('private.key'), key, agent, privateKey.etag));
        }
        agent.destroy();
      }),
    );
    assert.deepEqual(Object.fromEntries(statuses), { 200: 2 * clients, 304: 2 * clients });
    assert.match(log(), /"status":200/);
    assert.doesNotMatch(log(), /"level":"(warn|error)"|stopped reading the response|max-connections/);
  });
}
