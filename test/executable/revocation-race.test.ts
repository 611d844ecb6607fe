/**
 * Caches against the command line: while clients flood the server with downloads, another process revokes their key,
 * deletes their certificate or imports a new version. Nothing that began after the command returned may come from
 * before it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** An answer, and when its request began, in milliseconds. */
type Answer = { readonly began: number; readonly status: number; readonly version: string | undefined };

const clients = 8;

/** So many answers are there before the command starts, and so many to requests that began when it had returned. */
const enough = 60;

async function prepared(t: TestContext) {
  const dataDir = join(tempDir(t), 'data');
  const run = async (...args: string[]) => {
    const { code, stdout, stderr } = await vault([...args, '--data-dir', dataDir]);
    assert.equal(code, 0, stderr);
    return stdout.trim();
  };
  await run('certificate', 'create', '--name', 'www', '--domain', 'www.example.com');
  const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
  let keys = 0;
  const makeKey = () => {
    keys += 1;
    return run('api-key', 'create', '--name', `flood-${keys}`, '--certificate', '*', ...scopes);
  };
  const { url } = await serve(t, dataDir, { args: ['--log-level', 'warn'] });
  const download = (agent: Agent, path: string, key: string) =>
    new Promise<Answer & { readonly body: string }>((resolve, reject) => {
      const began = performance.now();
      const headers = { Authorization: `Bearer ${key}` };
      get(`${url}/api/v1/certificates/${path}`, { agent, headers }, (response) => {
        let body = '';
        response.on('data', (piece) => {
          body += piece;
        });
        response.on('error', reject);
        response.on('end', () => {
          const version = response.headers['certificate-version'] as string | undefined;
          resolve({ began, status: response.statusCode ?? 0, version, body });
        });
      }).on('error', reject);
    });

  /** What is answered while `command` runs in another process, and to the requests that began when it had returned. */
  async function flood(paths: readonly string[], key: string, command: () => Promise<unknown>) {
    const before: Answer[] = [];
    const after: Answer[] = [];
    const running = Promise.withResolvers<void>();
    const agent = new Agent({ keepAlive: true });
    let returned = Number.POSITIVE_INFINITY;
    const floods = Array.from({ length: clients }, async (_, client) => {
      for (let n = client; after.length < enough; n += 1) {
        const { body: _, ...answer } = await download(agent, paths[n % paths.length] ?? '', key);
        (answer.began > returned ? after : before).push(answer);
        if (before.length === enough) running.resolve();
      }
    });
    const commanded = running.promise.then(command).then(() => {
      returned = performance.now();
    });
    await Promise.all([...floods, commanded]);
    agent.destroy();
    assert(before.length > enough, 'there was a flood while the command ran');
    return { before, after };
  }
  return { run, makeKey, download, flood };
}

const statuses = (answers: readonly Answer[]) => [...new Set(answers.map(({ status }) => status))];

suite('a flood of downloads', () => {
  test('gets only 401 and 429 once the command that revokes the API key has returned', async (t) => {
    const { run, makeKey, flood } = await prepared(t);
    for (let round = 0; round < 2; round += 1) {
      const key = await makeKey();
      const { id } = JSON.parse(await run('api-key', 'list')).at(-1);
      const paths = ['www/private.key', 'www/fullchain.crt', 'www'];
      const { before, after } = await flood(paths, key, () => run('api-key', 'revoke', '--id', String(id)));
      assert.equal(before[0]?.status, 200);
      // Whoever goes on with a key that does not count is soon told to wait.
      assert.deepEqual(
        statuses(after).filter((status) => status !== 401 && status !== 429),
        [],
      );
    }
  });

  test('gets only the new version once an import has returned, and only 404 once a deletion has returned', async (t) => {
    const { run, makeKey, download, flood } = await prepared(t);
    const key = await makeKey();
    const dir = tempDir(t);
    const agent = new Agent();
    const files = { 'fullchain.crt': join(dir, 'fullchain'), 'private.key': join(dir, 'key') };
    for (const [file, path] of Object.entries(files)) {
      writeFileSync(path, (await download(agent, `www/${file}`, key)).body, { mode: 0o600 });
    }
    const material = ['--fullchain', files['fullchain.crt'], '--private-key', files['private.key']];
    const importIt = () => run('certificate', 'import', '--force', '--name', 'imported', ...material);
    await importIt();
    const paths = ['imported/private.key', 'imported/fullchain.crt', 'imported/chain.crt'];
    const imported = await flood(paths, key, importIt);
    assert.equal(imported.before[0]?.version, '1');
    assert.deepEqual(statuses(imported.after), [200]);
    assert.deepEqual([...new Set(imported.after.map(({ version }) => version))], ['2']);
    const deleted = await flood(paths, key, () => run('certificate', 'delete', '--name', 'imported'));
    assert.equal(deleted.before[0]?.status, 200);
    assert.deepEqual(statuses(deleted.after), [404]);
  });
});
