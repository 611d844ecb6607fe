/**
 * A vault whose file was being changed as a whole when the power failed: every command undoes that change and goes on.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const driver = new URL('../../../node_modules/better-sqlite3/lib/index.js', import.meta.url);

/** A vault with one certificate; a process that changed its file was killed after the first pages of many. */
async function interrupted(t: TestContext): Promise<string> {
  const data = join(tempDir(t), 'data');
  const made = await vault(['certificate', 'create', '--name=web', '--domain=web.test', '--data-dir', data]);
  assert.equal(made.code, 0, made.stderr);
  const script = `
    import BetterSqlite3 from '${driver}';
    const db = new BetterSqlite3(process.argv[1]);
    db.pragma('journal_mode = delete');
    // Without room in memory, pages go to the file before the end of the transaction.
    db.pragma('cache_size = 1');
    db.exec('begin; create table t (x); delete from settings; delete from audit_events;');
    for (let n = 0; n < 200; n += 1) db.prepare('insert into t values (randomblob(4000))').run();
    process.stdout.write('changing');
    // Collected as garbage, the connection would roll the change back.
    setInterval(() => db.open, 1000);
  `;
  const path = join(data, 'vault.db');
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.ok(statSync(`${path}-journal`).size > 0);
  return data;
}

for (const args of [
  ['certificate', 'list'],
  ['api-key', 'list'],
  ['audit', 'verify'],
]) {
  test(`vault ${args.join(' ')} undoes an interrupted change`, async (t) => {
    const data = await interrupted(t);
    const { code, stderr, stdout } = await vault([...args, '--data-dir', data]);
    assert.equal(code, 0, stderr + stdout);
    const path = join(data, 'vault.db');
    // Before this process opens the database, which would undo the change, too.
    assert.equal(existsSync(`${path}-journal`), false);
    const db = new BetterSqlite3(path, { readonly: true });
    t.after(() => db.close());
    assert.deepEqual(db.pragma('integrity_check', { simple: true }), 'ok');
    const kept = `select name from sqlite_schema where name = 't' union all select name from certificates
      union all select 'events' where exists (select 1 from audit_events)
      union all select 'settings' where exists (select 1 from settings)`;
    assert.deepEqual(db.prepare(kept).pluck().all(), ['web', 'events', 'settings']);
  });
}

test('a restore replaces a vault that has an interrupted change, by the whole vault of the backup', async (t) => {
  const data = await interrupted(t);
  const file = join(tempDir(t), 'copy.backup');
  const other = join(tempDir(t), 'other');
  const run = async (...args: string[]) => {
    const { code, stderr } = await vault(args);
    assert.equal(code, 0, stderr);
  };
  await run('certificate', 'create', '--name=api', '--domain=api.test', '--data-dir', other);
  await run('backup', file, '--data-dir', other);
  const key = ['--master-key-file', join(other, 'master.key')];
  await run('restore', file, '--replace', '--yes', '--data-dir', data, ...key);
  assert.equal(existsSync(`${join(data, 'vault.db')}-journal`), false);
  await run('audit', 'verify', '--data-dir', data, ...key);
  const list = await vault(['certificate', 'list', '--json', '--data-dir', data, ...key]);
  const names = (JSON.parse(list.stdout) as { name: string }[]).map(({ name }) => name);
  assert.deepEqual(names, ['api']);
});
