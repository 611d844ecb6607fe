/** The mark beside a database: it refuses what ends before it, and never a healthy vault. */
import assert from 'node:assert/strict';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { openVault } from '../../../src/cli/runtime/open-vault.ts';
import { beginServing, endServing, updateMark } from '../../../src/domain/instance/served-vault.ts';
import { readMark } from '../../../src/domain/instance/vault-mark.ts';
import { addCertificates } from '../../harness/database/marked-vault.ts';
import { ofFiles } from '../../harness/database/tested-engine.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { settingsFor, testVault } from '../../harness/test-vault.ts';
import { TestWorld } from '../../harness/test-world.ts';

/** A vault as a server that was killed leaves it, with a certificate in its log; and the files it had at the start. */
async function killed(t: TestContext) {
  const { vault, dataDir, close } = await testVault(t);
  await addCertificates(vault, 'a');
  await beginServing(vault);
  const image = (name: string) => {
    const path = join(tempDir(t), name);
    cpSync(dataDir, path, { recursive: true });
    return path;
  };
  const early = image('early');
  await addCertificates(vault, 'b');
  await updateMark(vault);
  const late = image('late');
  await addCertificates(vault, 'c');
  const last = image('last');
  await endServing(vault, 'test');
  await close();
  return { early, late, last, stopped: dataDir, keyring: vault.keyring };
}

const opens = async (dir: string) => (await openVault(settingsFor(dir), new TestWorld(), 'refuse')).close();

test(
  'a vault opens after a kill, with a current or an older mark',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { early, late, last } = await killed(t);
    for (const dir of [early, late, last]) await opens(dir);
  },
);

test(
  'a vault opens with an outdated mark, and with a foreign, an empty or a damaged one',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { early, late, last } = await killed(t);
    cpSync(join(early, 'vault.mark'), join(last, 'vault.mark'));
    await opens(last);
    const other = await killed(t);
    for (const content of [readFileSync(join(other.last, 'vault.mark')), '', '{}', 'x'.repeat(5000)]) {
      writeFileSync(join(late, 'vault.mark'), content);
      await opens(late);
    }
  },
);

test(
  'a mark that was changed without the master key is ignored',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { late, keyring } = await killed(t);
    const path = join(late, 'vault.mark');
    const mark = readMark(path, keyring);
    assert.ok(typeof mark === 'object' && mark.events > 0 && mark.versions === 2 && mark.folds === 1);
    writeFileSync(path, readFileSync(path, 'utf8').replace(/"audit_events":\d+/, '"audit_events":999'));
    assert.equal(readMark(path, keyring), 'unknown');
    await opens(late);
  },
);

test(
  'a database that lost its WAL is rejected until the mark is emptied',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { late } = await killed(t);
    rmSync(join(late, 'vault.db-wal'));
    rmSync(join(late, 'vault.db-shm'), { force: true });
    await assert.rejects(
      opens(late),
      /is older than its mark: it ends at audit event \d+ of \d+ and certificate version 1 of 2/,
    );
    assert.equal(
      existsSync(join(late, 'vault.db-wal')) && readFileSync(join(late, 'vault.db-wal')).length > 0,
      false,
    );
    writeFileSync(join(late, 'vault.mark'), '');
    await opens(late);
  },
);

test(
  'a copy of a running database without WAL and mark is rejected; a copy of a stopped one opens',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { last, stopped } = await killed(t);
    const copyOf = (from: string) => {
      const to = join(tempDir(t), 'copy');
      mkdirSync(to, { mode: 0o700 });
      for (const name of ['vault.db', 'master.key']) cpSync(join(from, name), join(to, name));
      return to;
    };
    const copy = copyOf(last);
    await assert.rejects(opens(copy), /is a copy of a running vault's database without its log/);
    writeFileSync(join(copy, 'vault.mark'), '');
    await opens(copy);
    await opens(copyOf(stopped));
    await opens(copyOf(stopped));
  },
);

test(
  'a database and its WAL open without a mark, and a new mark is created',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { last } = await killed(t);
    rmSync(join(last, 'vault.mark'));
    await opens(last);
    assert.ok(existsSync(join(last, 'vault.mark')));
    await opens(last);
  },
);

test(
  'a database with a foreign WAL is rejected and left unchanged, also through a symlink',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { early, last } = await killed(t);
    const again = await openVault(settingsFor(early), new TestWorld(), 'create');
    await beginServing(again.vault);
    await addCertificates(again.vault, 'd');
    const dir = join(tempDir(t), 'mixed');
    cpSync(early, dir, { recursive: true });
    await again.close();
    cpSync(join(last, 'vault.db'), join(dir, 'vault.db'));
    const before = readFileSync(join(dir, 'vault.db'));
    await assert.rejects(opens(dir), /is older than its log \S+-wal, which does not belong to it|is damaged/);
    assert.deepEqual(readFileSync(join(dir, 'vault.db')), before);
    // The same where the database is a link: SQLite keeps the log beside the file that it leads to.
    const disk = tempDir(t);
    for (const name of ['vault.db', 'vault.db-wal']) renameSync(join(dir, name), join(disk, name));
    symlinkSync(join(disk, 'vault.db'), join(dir, 'vault.db'));
    await assert.rejects(opens(dir), /is older than its log \S+-wal, which does not belong to it|is damaged/);
    assert.deepEqual(readFileSync(join(disk, 'vault.db')), before);
  },
);

test(
  'an emptied database behind a symlink is rejected, and its WAL is kept',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { last } = await killed(t);
    const disk = tempDir(t);
    for (const name of ['vault.db', 'vault.db-wal']) renameSync(join(last, name), join(disk, name));
    symlinkSync(join(disk, 'vault.db'), join(last, 'vault.db'));
    rmSync(join(last, 'vault.mark'));
    writeFileSync(join(disk, 'vault.db'), '');
    const log = readFileSync(join(disk, 'vault.db-wal'));
    const settings = { ...settingsFor(last), masterKeyFrom: 'setting' as const };
    await assert.rejects(
      openVault(settings, new TestWorld(), 'create'),
      /is empty, but its log \S+ contains/,
    );
    assert.deepEqual(readFileSync(join(disk, 'vault.db-wal')), log);
  },
);

test(
  'a mark from before a restore into the same directory is ignored',
  ofFiles('the mark lies beside it'),
  async (t) => {
    const { late } = await killed(t);
    const { vault, close } = await testVault(t, { dataDir: late });
    await vault.db.write((writer) =>
      writer
        .updateTable('settings')
        .set({ value: 'f'.repeat(32) })
        .where('key', '=', 'vault-id')
        .execute(),
    );
    await vault.db.write((writer) => writer.deleteFrom('certificate_versions').execute());
    await close();
    await opens(late);
  },
);
