/**
 * Several machines on one database of a server, by the built executable: whatever one of them or a command changes
 * counts at the next request on all, and no request needs the node that answered the one before.
 */
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../harness/eventually.ts';
import { cookieOf, fromPage, goodPassword } from '../harness/http/sign-in-fixtures.ts';
import { type PostgresServer, startPostgres } from '../harness/postgres/postgres.ts';
import { type RunningVault, serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

type Cluster = {
  readonly server: PostgresServer;
  readonly url: string;
  readonly nodes: readonly [RunningVault, RunningVault];
  /** Runs a command on the host of a node. */
  readonly run: (node: 0 | 1, ...args: string[]) => ReturnType<typeof vault>;
  readonly ask: (node: 0 | 1, path: string, init?: RequestInit) => Promise<Response>;
};

/** The data directory of another node: it shares nothing but the master key. */
function directoryBeside(t: TestContext, first: string): string {
  const directory = join(tempDir(t), 'data');
  mkdirSync(directory, { mode: 0o700 });
  copyFileSync(join(first, 'master.key'), join(directory, 'master.key'));
  chmodSync(join(directory, 'master.key'), 0o600);
  return directory;
}

async function cluster(t: TestContext): Promise<Cluster> {
  const server = await startPostgres(t);
  const url = await server.createDatabase();
  const environment = { CERTVAULT_DATABASE: url };
  const first = join(tempDir(t), 'data');
  const one = await serve(t, first, { environment });
  const second = directoryBeside(t, first);
  const two = await serve(t, second, { environment });
  const nodes = [one, two] as const;
  return {
    server,
    url,
    nodes,
    run: (node, ...args) => vault([...args, '--data-dir', [first, second][node] ?? ''], { environment }),
    ask: (node, path, init) => fetch(new URL(path, nodes[node].url), init),
  };
}

async function done(outcome: ReturnType<typeof vault>): Promise<string> {
  const { code, stdout, stderr } = await outcome;
  assert.equal(code, 0, stderr);
  return stdout.trim();
}

const withKey = (key: string) => ({ headers: { Authorization: `Bearer ${key}` } });

test('a revocation, a new version and a deletion take effect at the next request on every node', async (t) => {
  const { run, ask } = await cluster(t);
  await done(run(0, 'certificate', 'create', '--name', 'web', '--domain', 'web.example.test'));
  const create = (node: 0 | 1, name: string) =>
    done(
      run(node, 'api-key', 'create', '--name', name, '--certificate', 'web', '--scope', 'certificates:read'),
    );
  const statuses = (key: string) =>
    Promise.all(
      ([0, 1] as const).map(async (node) => {
        const answer = await ask(node, '/api/v1/certificates/web/fullchain.pem', withKey(key));
        await answer.arrayBuffer();
        return answer.status;
      }),
    );
  for (const [index, node] of ([0, 1, 0, 1] as const).entries()) {
    const key = await create(node, `k${index}`);
    assert.deepEqual(await statuses(key), [200, 200]);
    await done(run(index < 2 ? 1 : 0, 'api-key', 'revoke', `k${index}`));
    assert.deepEqual(await statuses(key), [401, 401], `k${index}`);
  }
  const key = await create(0, 'last');
  const etags = () =>
    Promise.all(
      ([0, 1] as const).map(async (node) => {
        const answer = await ask(node, '/api/v1/certificates/web/fullchain.pem', withKey(key));
        await answer.arrayBuffer();
        return answer.headers.get('etag');
      }),
    );
  const [before, beforeToo] = await etags();
  assert.equal(before, beforeToo);
  await done(run(1, 'certificate', 'renew', 'web', '--wait'));
  const [after, afterToo] = await etags();
  assert.equal(after, afterToo);
  assert.notEqual(after, before);
  await done(run(0, 'certificate', 'delete', 'web', '--force'));
  assert.deepEqual(await statuses(key), [403, 403]);
  assert.match(await done(run(1, 'audit', 'verify')), /is intact/);
});

test('a file that is applied on the host of any node takes effect at the next request on every node', async (t) => {
  const { run, ask } = await cluster(t);
  const folder = tempDir(t);
  const file = join(folder, 'desired.yaml');
  const withKeys = (...keys: string[]) =>
    writeFileSync(
      file,
      `version: 1
certificates:
  web: {domains: [web.example.test]}
api_keys:
${keys.map((key) => `  ${key}: {scopes: [certificates:read], certificates: [web], secret_file: ${key}.key}`).join('\n')}
`,
    );
  const apply = (node: 0 | 1, ...options: string[]) => done(run(node, 'apply', '-f', file, ...options));
  const statuses = (key: string) =>
    Promise.all(
      ([0, 1] as const).map(async (node) => {
        const answer = await ask(node, '/api/v1/certificates/web/fullchain.pem', withKey(key));
        await answer.arrayBuffer();
        return answer.status;
      }),
    );
  const secret = (name: string) => readFileSync(join(folder, `${name}.key`), 'utf8').trim();
  withKeys('a', 'b');
  await apply(0, '--yes');
  assert.deepEqual(await statuses(secret('a')), [200, 200]);
  const events = async () => (await done(run(1, 'audit', 'export'))).split('\n').length;
  const before = await events();
  // Both hosts at once, as configuration management does: there is nothing to change.
  await Promise.all([apply(0, '--yes'), apply(1, '--yes')]);
  assert.equal(await events(), before);
  withKeys('a', 'c');
  await apply(1, '--prune', '--yes');
  assert.deepEqual(await statuses(secret('a')), [200, 200]);
  assert.deepEqual(await statuses(secret('b')), [401, 401]);
  assert.deepEqual(await statuses(secret('c')), [200, 200]);
});

test('setup links, sessions and events of the console work from any node', async (t) => {
  const { run, ask } = await cluster(t);
  const link = await done(run(0, 'admin', 'setup-link'));
  const [, token = ''] = /#token=(\S+)$/.exec(link) ?? [];
  const setUp = () =>
    ask(1, '/api/v1/setup', fromPage('POST', { token, name: 'alice', password: goodPassword }));
  const made = await setUp();
  assert.equal(made.status, 201);
  assert.equal((await setUp()).status, 403);
  const cookie = cookieOf(made);
  for (const node of [0, 1] as const) {
    assert.equal((await ask(node, '/api/v1/session', fromPage('GET', undefined, cookie))).status, 200);
  }
  const ended = new AbortController();
  t.after(() => ended.abort());
  const events = await ask(0, '/api/v1/events', fromPage('GET', undefined, cookie, { signal: ended.signal }));
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader();
  const domains = ['a.example.test'];
  const created = await ask(1, '/api/v1/certificates', fromPage('POST', { name: 'a', domains }, cookie));
  assert.equal(created.status, 201);
  let seen = '';
  while (!seen.includes('vault')) {
    const chunk = await reader?.read();
    assert.equal(chunk?.done, false, seen);
    seen += chunk?.value ?? '';
  }
  assert.equal((await ask(1, '/api/v1/session', fromPage('DELETE', undefined, cookie))).status, 204);
  assert.equal((await ask(0, '/api/v1/session', fromPage('GET', undefined, cookie))).status, 401);
});

test('every node responds to an http-01 challenge of another node', async (t) => {
  const { server, url, ask } = await cluster(t);
  await server.query(
    `insert into acme_challenges (identifier, type, token, key_authorization, created_at)
     values ('web.example.test', 'http-01', 'token-of-another-node', 'token-of-another-node.print', 1)`,
    [],
    new URL(url).pathname.slice(1),
  );
  for (const node of [0, 1] as const) {
    const answer = await ask(node, '/.well-known/acme-challenge/token-of-another-node');
    assert.equal(await answer.text(), 'token-of-another-node.print');
  }
});

test('a node without the master key or with a wrong one fails to start with an error message', async (t) => {
  const { url } = await cluster(t);
  const environment = { CERTVAULT_DATABASE: url };
  const none = await vault(['serve', '--data-dir', join(tempDir(t), 'none'), '--listen', '127.0.0.1:0'], {
    environment,
  });
  assert.equal(none.code, 1);
  assert.match(none.stderr, /master\.key is missing.*\n.*from another node/);
  const other = join(tempDir(t), 'other');
  const stranger = await serve(t, other);
  await stranger.end();
  const wrong = await vault(['serve', '--data-dir', other, '--listen', '127.0.0.1:0'], { environment });
  assert.equal(wrong.code, 1);
  assert.match(wrong.stderr, /is not the master key of the vault in postgres:/);
});

test('downloads get 503 while the database server is down, and 200 once it is back', async (t) => {
  const { server, run, ask } = await cluster(t);
  await done(run(0, 'certificate', 'create', '--name', 'web', '--domain', 'web.example.test'));
  const key = await done(
    run(0, 'api-key', 'create', '--name', 'k', '--certificate', 'web', '--scope', 'private_keys:read'),
  );
  const status = async (node: 0 | 1) => {
    const answer = await ask(node, '/api/v1/certificates/web/private.key', withKey(key));
    await answer.arrayBuffer();
    return answer.status;
  };
  const recovered = (node: 0 | 1) =>
    eventually(`node ${node} serves again`, async () => {
      const last = await status(node);
      assert([200, 503].includes(last), String(last));
      return last === 200;
    });
  for (const node of [0, 1] as const) assert.equal(await status(node), 200);
  await server.kill();
  for (const node of [0, 1] as const) assert.equal(await status(node), 503);
  for (const node of [0, 1] as const) assert.equal((await ask(node, '/api/v1/ready')).status, 503);
  const refused = await run(0, 'certificate', 'list');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /postgres/i);
  await server.start();
  for (const node of [0, 1] as const) await recovered(node);
  assert.match(await done(run(1, 'audit', 'verify')), /is intact/);
});
