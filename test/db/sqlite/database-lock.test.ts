/** Exclusive locks of a database: only if it is unused, and then all of it is in one file. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, readlinkSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { Database } from '../../../src/db/database.ts';
import { holdDatabase } from '../../../src/db/sqlite/database-lock.ts';
import { eventually } from '../../harness/eventually.ts';
import { sourceUrl } from '../../harness/processes/racing-processes.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { TestWorld } from '../../harness/test-world.ts';

test('holdDatabase rejects a database that is open elsewhere and leaves it usable', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  const database = await Database.open(path, new TestWorld());
  t.after(() => database.close());
  assert.throws(() => holdDatabase(path), /the vault is running: another process uses .*vault\.db/);
  assert.equal(await database.generation(), 0);
  assert.ok(existsSync(`${path}-wal`));
});

test('a held database is a single file that cannot be opened until its release', async (t) => {
  const dir = tempDir(t);
  const path = join(dir, 'vault.db');
  await (await Database.open(path, new TestWorld())).close();
  const held = holdDatabase(path);
  assert.equal(held.state, 'whole');
  assert.deepEqual(readdirSync(dir), ['vault.db']);
  const other = new BetterSqlite3(path, { timeout: 0 });
  assert.throws(() => other.prepare('select count(*) from settings').get(), { code: 'SQLITE_BUSY' });
  other.close();
  held.release();
  await (await Database.open(path, new TestWorld())).close();
});

test('a file that is not a database is reported as damaged and left unchanged', (t) => {
  const path = join(tempDir(t), 'vault.db');
  writeFileSync(path, 'dear all\n'.repeat(1000));
  writeFileSync(`${path}-wal`, 'a log');
  const held = holdDatabase(path);
  assert.equal(held.state, 'damaged');
  held.release();
  assert.ok(readFileSync(path, 'utf8').startsWith('dear all'));
  assert.equal(readFileSync(`${path}-wal`, 'utf8'), 'a log');
});

/** Opens the database, and says what is in it or why it was refused. */
const open = `
  import { Database } from '${sourceUrl('db/database.ts')}';
  import { realWorld } from '${sourceUrl('base/world.ts')}';
  const said = await Database.open(process.argv[1], realWorld).then(
    async (db) => (await db.reader.selectFrom('issuers').select('name').executeTakeFirst()).name,
    (error) => error.message,
  );
  process.stdout.write(said);
`;

test('a process that opened a database before it was replaced does not use the old file', async (t) => {
  const path = join(tempDir(t), 'vault.db');
  for (const name of ['old', 'new']) {
    const database = await Database.open(`${path}-${name}`, new TestWorld());
    await database.write((writer) =>
      writer.insertInto('issuers').values({ name, type: 'x', created_at: 0 }).execute(),
    );
    await database.close();
  }
  renameSync(`${path}-old`, path);
  // Others can read it, but cannot go on to write.
  const held = new BetterSqlite3(path);
  t.after(() => held.close());
  held.pragma('journal_mode = delete');
  held.exec('begin immediate');
  const child = spawn(process.execPath, ['--input-type=module', '-e', open, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill());
  await eventually('the other process has the file open', () => hasOpen(child.pid ?? 0, path) || undefined);
  renameSync(`${path}-new`, path);
  held.close();
  // If it had only looked by then, it opens the new one.
  assert.match(
    await text(child.stdout),
    /^(?:the database was replaced while (?:it was open|the vault opened it) |new$)/,
  );
});

/** Whether a process has the file open, as far as the system tells. */
function hasOpen(pid: number, path: string): boolean {
  const descriptors = `/proc/${pid}/fd`;
  return readdirSync(descriptors).some((name) => {
    try {
      return readlinkSync(join(descriptors, name)) === path;
    } catch {
      // It was closed meanwhile.
      return false;
    }
  });
}
