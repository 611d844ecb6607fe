/**
 * Lists of thousands, which are read and printed in pieces: nothing is left out at the seams, and nothing is there
 * twice.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { fromSource, vault } from '../../harness/processes/vault-process.ts';

type Certificate = { readonly name: string; readonly current_version: unknown };
type ApiKey = { readonly id: number; readonly name: string; readonly certificates: readonly string[] };

const dir = mkdtempSync(join(tmpdir(), 'vault-long-lists-'));
after(() => rmSync(dir, { recursive: true }));
const certificates = 2000;
const keys = 1001;

before(async () => {
  const create = (...args: string[]) => vault([...args, '--data-dir', dir]);
  for (const args of [
    ['certificate', 'create', '--name', 'c-0000', '--domain', 'a.test'],
    ['api-key', 'create', '--name', 'k-0', '--scope', 'certificates:read', '--certificate', 'c-0000'],
  ]) {
    assert.equal((await create(...args)).code, 0);
  }
  const database = new BetterSqlite3(join(dir, 'vault.db'));
  database.exec(`
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${certificates - 1})
      insert into certificates (name, domains, key_type, issuer_id, auto_renew, reuse_key, created_at)
      select printf('c-%04d', i), domains, key_type, issuer_id, auto_renew, reuse_key, created_at
        from n, certificates where name = 'c-0000';
    with recursive n (i) as (select 1 union all select i + 1 from n where i < ${keys - 1})
      insert into api_keys (name, prefix, hash, scopes, any_certificate, allowed_networks, created_at)
      select 'k-' || i, prefix || i, hash, scopes, any_certificate, allowed_networks, created_at
        from n, api_keys where name = 'k-0';
    insert into api_key_certificates
      select api_keys.id, certificates.id from api_keys, certificates
        where api_keys.name = 'k-500' and certificates.name in ('c-0007', 'c-0003');
  `);
  database.close();
});

test('all API keys are one JSON array in the order of their ids, each with its own allowlist', async () => {
  const { code, stdout } = await vault(['api-key', 'list', '--data-dir', dir]);
  const listed = JSON.parse(stdout) as ApiKey[];
  assert.equal(code, 0);
  assert.deepEqual(
    listed.map(({ id, name }) => [id, name]),
    Array.from({ length: keys }, (_, index) => [index + 1, `k-${index}`]),
  );
  assert.deepEqual(
    listed.filter(({ certificates: names }) => names.length > 0).map((key) => [key.name, key.certificates]),
    [
      ['k-0', ['c-0000']],
      ['k-500', ['c-0003', 'c-0007']],
    ],
  );
});

test('all certificates are one JSON array, and lines of one table, in the order of their names', async () => {
  const expected = Array.from({ length: certificates }, (_, index) => `c-${String(index).padStart(4, '0')}`);
  const json = await vault(['certificate', 'list', '--json', '--data-dir', dir]);
  const listed = JSON.parse(json.stdout) as Certificate[];
  assert.deepEqual(
    listed.map(({ name }) => name),
    expected,
  );
  assert.deepEqual(
    listed.filter(({ current_version }) => current_version !== null).map(({ name }) => name),
    ['c-0000'],
  );
  const table = await vault(['certificate', 'list', '--data-dir', dir]);
  const lines = table.stdout.trimEnd().split('\n').slice(1);
  assert.deepEqual(
    lines.map((line) => line.slice(0, 6)),
    expected,
  );
});

test('a slow reader gets the whole output, and a reader that stops early causes no failure', async () => {
  const [program = '', ...args] = [...fromSource, 'certificate', 'list', '--json', '--data-dir', dir];
  const whole = (await vault(['certificate', 'list', '--json', '--data-dir', dir])).stdout;
  const slow = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let read = '';
  for await (const piece of slow.stdout.setEncoding('utf8')) {
    read += piece;
    await new Promise(setImmediate);
  }
  assert.equal(read, whole);
  const left = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  left.stderr.setEncoding('utf8').on('data', (piece: string) => {
    complaint += piece;
  });
  await once(left.stdout, 'data');
  left.stdout.destroy();
  const [code] = await once(left, 'close');
  assert.deepEqual([code, complaint], [0, '']);
});
