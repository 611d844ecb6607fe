/** A backup that is not what was written is refused: cut anywhere, changed anywhere, forged, or not one at all. */

import assert from 'node:assert/strict';
import {
  appendFileSync,
  copyFileSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import fc from 'fast-check';
import { day } from '../../../src/base/duration.ts';
import { Secret } from '../../../src/base/secret.ts';
import { MasterKey } from '../../../src/crypto/secrets/master-key.ts';
import {
  checkBackup,
  copyOut,
  newDraft,
  readBackup,
  sealDraft,
} from '../../../src/domain/backup/backup-file.ts';
import { pageSize } from '../../../src/domain/backup/backup-manifest.ts';
import { makeBackup } from '../../harness/database/backup-fixtures.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { makeCertificate } from '../../harness/http/fixtures.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

async function madeBackup(t: TestContext): Promise<{ file: string; copy: string; masterKey: MasterKey }> {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'web');
  const dir = tempDir(t);
  const [file, copy] = [join(dir, 'x.backup'), join(dir, 'copy')];
  await makeBackup(vault, file);
  return { file, copy, masterKey: vault.keyring.current };
}

test('a backup truncated at any length is rejected', async (t) => {
  const { file, copy } = await madeBackup(t);
  const { size } = statSync(file);
  const lengths = fc.oneof(
    fc.integer({ min: 0, max: size - 1 }),
    fc.integer({ min: size - 2 * pageSize, max: size - 1 }),
  );
  await fc.assert(
    fc.asyncProperty(lengths, async (length) => {
      copyFileSync(file, copy);
      truncateSync(copy, length);
      await assert.rejects(readBackup(copy), /is not a vault backup, or is truncated|is damaged/);
    }),
    fuzzRuns(60),
  );
});

test('a backup with any byte changed is rejected', async (t) => {
  const { file, copy, masterKey } = await madeBackup(t);
  const whole = readFileSync(file);
  const places = fc.oneof(
    fc.nat(whole.length - 1),
    fc.integer({ min: whole.length - pageSize, max: whole.length - 1 }),
  );
  await fc.assert(
    fc.asyncProperty(places, fc.integer({ min: 1, max: 255 }), async (place, change) => {
      const bytes = Buffer.from(whole);
      bytes[place] = (bytes[place] ?? 0) ^ change;
      writeFileSync(copy, bytes);
      // A changed MAC leaves the checksum right; it is found by the one who has the key.
      await assert.rejects(
        checkBackup(copy, masterKey),
        /is not a vault backup|is damaged|was modified|by a newer vault/,
      );
    }),
    fuzzRuns(80),
  );
});

test('a backup with data after its end is rejected', async (t) => {
  const { file } = await madeBackup(t);
  appendFileSync(file, '\n');
  await assert.rejects(readBackup(file), /is not a vault backup, or is truncated/);
});

test('a backup sealed with another master key is rejected', async (t) => {
  const { file, copy, masterKey } = await madeBackup(t);
  const { manifest, digest } = await checkBackup(file, masterKey);
  await copyOut(file, { manifest, digest }, copy);
  const database = new BetterSqlite3(copy);
  database.pragma('journal_mode = delete');
  database.exec("update certificates set name = 'mine'");
  database.close();
  await sealDraft(copy, manifest, new MasterKey(new Secret(Buffer.alloc(32, 7))));
  await readBackup(copy);
  await assert.rejects(
    checkBackup(copy, masterKey),
    /was modified: the master key of its vault does not authenticate it/,
  );
});

test('a manifest whose counts or schema differ from the database is rejected', async (t) => {
  const { file, copy, masterKey } = await madeBackup(t);
  const { manifest, digest } = await checkBackup(file, masterKey);
  for (const other of [
    { counts: { ...manifest.counts, certificates: 2 } },
    { counts: { ...manifest.counts, more: 0 } },
    { schema: manifest.schema.slice(1) },
  ]) {
    const draft = `${copy}-${JSON.stringify(other).length}`;
    await copyOut(file, { manifest, digest }, draft);
    await sealDraft(draft, { ...manifest, ...other }, masterKey);
    await assert.rejects(checkBackup(draft, masterKey), /do not match its manifest/);
  }
});

test('a file that changes between the check and the copy is rejected', async (t) => {
  const { file, copy, masterKey } = await madeBackup(t);
  const page = await checkBackup(file, masterKey);
  const bytes = readFileSync(file);
  bytes[5000] = (bytes[5000] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  await assert.rejects(copyOut(file, page, copy), /changed while it was being read/);
});

test('damage inside the database is found though the checksum is right', async (t) => {
  const { file, copy, masterKey } = await madeBackup(t);
  const { manifest, digest } = await checkBackup(file, masterKey);
  await copyOut(file, { manifest, digest }, copy);
  const bytes = readFileSync(copy);
  const place = bytes.indexOf('BEGIN CERTIFICATE');
  // The page's header: how its cells are found.
  bytes.fill(0xff, place - (place % pageSize) + 1, place - (place % pageSize) + 8);
  writeFileSync(copy, bytes);
  await sealDraft(copy, manifest, masterKey);
  await assert.rejects(checkBackup(copy, masterKey, 'the file'), /^OperatorError: the file is damaged: /);
});

for (const [what, content] of [
  ['an empty file', ''],
  ['a text file', 'dear all\n'.repeat(1000)],
  ['a page of zeros', Buffer.alloc(3 * pageSize)],
] as const) {
  test(`${what} is rejected as a backup`, async (t) => {
    const file = join(tempDir(t), 'file');
    writeFileSync(file, content);
    await assert.rejects(readBackup(file), /is not a vault backup, or is truncated/);
  });
}

test('drafts that a killed process left a day ago are removed, younger ones and other files stay', async (t) => {
  const { vault, world, dataDir } = await testVault(t);
  const dir = tempDir(t);
  const [old, young] = [newDraft(dir, world), newDraft(dir, world)];
  writeFileSync(`${old}-wal`, '');
  writeFileSync(join(dir, 'notes.draft'), '');
  const [then, now] = [(world.now() - 2 * day) / 1000, world.now() / 1000];
  for (const path of [old, `${old}-wal`, join(dir, 'notes.draft')]) utimesSync(path, then, then);
  utimesSync(young, now, now);
  await makeBackup(vault, join(dir, 'x.backup'));
  assert.deepEqual(readdirSync(dir).sort(), [young.slice(dir.length + 1), 'notes.draft', 'x.backup'].sort());
  assert.equal(
    readdirSync(dataDir).some((name) => name.endsWith('.draft')),
    false,
  );
});
