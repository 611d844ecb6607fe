/**
 * A disk that takes its time: only the requests whose own answer must be durable first wait for it. Each commit waits
 * here until the test lets it go on.
 */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { diskShim } from '../torture/disk-shim.ts';

test(
  'requests that record nothing get responses while a commit waits for the disk',
  needs('cc'),
  async (t) => {
    const scratch = tempDir(t);
    const root = join(scratch, 'disk');
    mkdirSync(root, { mode: 0o700 });
    const { environment, fail } = diskShim(scratch, root);
    const data = join(root, 'data');
    const run = async (...args: string[]) => {
      const { code, stdout, stderr } = await vault([...args, '--data-dir', data]);
      assert.equal(code, 0, stderr);
      return stdout.trim();
    };
    await run('certificate', 'create', '--name=web', '--domain=web.test');
    const key = await run(
      'api-key',
      'create',
      '--name=www',
      '--certificate=web',
      '--scope=certificates:read',
    );
    const server = await serve(t, data, { environment });
    const ask = (path: string, headers: Record<string, string> = {}) =>
      fetch(`${server.url}/api/v1/certificates/web${path}`, {
        headers: { Authorization: `Bearer ${key}`, ...headers },
      });
    const first = await ask('/fullchain.pem');
    const etag = first.headers.get('ETag') ?? '';
    await first.arrayBuffer();

    fail({ operation: 'sync', error: 'WAIT', pattern: '*-wal' });
    let answered = 0;
    const downloads = Array.from({ length: 4 }, async () => {
      const response = await ask('/fullchain.pem');
      answered += 1;
      assert.equal(response.status, 200);
      await response.arrayBuffer();
      return response.headers.get('X-Request-Id');
    });
    const other = new BetterSqlite3(join(data, 'vault.db'), { timeout: 0 });
    t.after(() => other.close());
    // Until the commit of a download holds the write lock.
    const isHeld = () => {
      try {
        other.exec('begin immediate; rollback');
        return false;
      } catch {
        return true;
      }
    };
    while (!isHeld()) await ask('', {});

    for (let round = 0; round < 50; round += 1) {
      const responses = await Promise.all([
        ask('/fullchain.pem', { 'If-None-Match': etag }),
        ask(''),
        fetch(`${server.url}/api/v1/openapi.json`),
        fetch(`${server.url}/api/v1/health`),
      ]);
      assert.deepEqual(
        responses.map(({ status }) => status),
        [304, 200, 200, 200],
      );
      await Promise.all(responses.map((response) => response.arrayBuffer()));
    }
    assert.equal(answered, 0);

    fail();
    const ids = (await Promise.all(downloads)).toSorted();
    const recorded = other
      .prepare("select request_id from audit_events where action = 'certificate.download' order by id")
      .pluck()
      .all() as string[];
    assert.deepEqual(recorded.slice(1).toSorted(), ids);
    assert.equal((await server.end()).code, 0, server.log());
    assert.doesNotMatch(server.log(), /"level":"(warn|error)"/);
    assert.ok(readFileSync(join(data, 'vault.db')).length > 0);
  },
);
