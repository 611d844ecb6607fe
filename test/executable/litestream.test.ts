/**
 * Litestream beside the vault: it replicates while both work, and what it restores is the vault up to the moment at
 * which the machine was lost, with nothing that anybody has set up for it.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { goFolders } from '../harness/ca/pebble-files.ts';
import { eventually } from '../harness/eventually.ts';
import { commandLine } from '../harness/processes/command-line.ts';
import { findProgram, needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';

const program = findProgram('litestream', goFolders) ?? '';

/** Replicates the database of `data` into a folder beside it, until the test ends. */
function replicate(t: TestContext, data: string): { config: string; end: () => Promise<unknown> } {
  const config = join(dirname(data), 'litestream.yml');
  const replica = { type: 'file', path: join(dirname(data), 'replica'), 'sync-interval': '100ms' };
  writeFileSync(config, JSON.stringify({ dbs: [{ path: join(data, 'vault.db'), replica }] }));
  const child = spawn(program, ['replicate', '-config', config], { stdio: 'ignore' });
  const ended = once(child, 'close');
  const end = () => {
    child.kill('SIGKILL');
    return ended;
  };
  t.after(end);
  return { config, end };
}

/** What the replica holds, as a database at `path`; undefined while there is none yet. */
function restored(config: string, data: string, path: string): number | undefined {
  rmSync(path, { force: true });
  const { status } = spawnSync(program, ['restore', '-config', config, '-o', path, join(data, 'vault.db')]);
  if (status !== 0 || !existsSync(path)) return undefined;
  const database = new BetterSqlite3(path, { readonly: true });
  try {
    assert.deepEqual(database.pragma('integrity_check'), [{ integrity_check: 'ok' }]);
    return database.prepare('select count(*) from certificates').pluck().get() as number;
  } finally {
    database.close();
  }
}

test(
  'a vault that is restored from its Litestream replica after kill -9 serves the same private key',
  needs('litestream', goFolders),
  async (t) => {
    const { data, done } = commandLine(t);
    await done('certificate', 'create', '--name=first', '--domain=a.test');
    const created = await done(
      'api-key',
      'create',
      '--name=k',
      '--scope=private_keys:read',
      '--certificate=*',
    );
    const headers = { Authorization: `Bearer ${created.stdout.trim()}` };
    const key = async (url: string) => {
      const response = await fetch(`${url}/api/v1/certificates/last/private.key`, { headers });
      return `${response.status} ${response.headers.get('etag')} ${await response.text()}`;
    };
    const server = await serve(t, data);
    const { config, end } = replicate(t, data);
    for (const name of ['second', 'third', 'last']) {
      await done('certificate', 'create', `--name=${name}`, '--domain=a.test');
    }
    const before = await key(server.url);
    assert.match(before, /^200 "\S+" -----BEGIN PRIVATE KEY-----/);
    // Backups work meanwhile, and its tables do not keep them from being restored.
    const backup = join(dirname(data), 'x.backup');
    await done('backup', backup);
    await done('restore', backup, '--check');
    const copy = join(dirname(data), 'copy.db');
    await eventually('the replica has everything', () =>
      restored(config, data, copy) === 4 ? true : undefined,
    );
    await server.end('SIGKILL');
    await end();

    const elsewhere = join(dirname(data), 'elsewhere');
    mkdirSync(elsewhere, { mode: 0o700 });
    assert.equal(restored(config, data, copy), 4);
    copyFileSync(copy, join(elsewhere, 'vault.db'));
    copyFileSync(join(data, 'master.key'), join(elsewhere, 'master.key'));
    for (const name of ['vault.db', 'master.key']) chmodSync(join(elsewhere, name), 0o600);
    const again = await serve(t, elsewhere);
    assert.equal(await key(again.url), before);
  },
);

test(
  'restore --replace fails while Litestream has the database open',
  needs('litestream', goFolders),
  async (t) => {
    const { data, done } = commandLine(t);
    await done('certificate', 'create', '--name=first', '--domain=a.test');
    const backup = join(dirname(data), 'x.backup');
    await done('backup', backup);
    const { config, end } = replicate(t, data);
    await eventually('a replica', () => restored(config, data, join(dirname(data), 'copy.db')));
    const { code, stderr } = await vault(['restore', backup, '--replace', '--data-dir', data]);
    assert.equal(code, 1);
    assert.match(stderr, /^vault: the vault is running: another process uses .*vault\.db$/m);
    await end();
    const after = await vault(['restore', backup, '--replace', '--data-dir', data]);
    assert.equal(after.code, 0, after.stderr);
  },
);
