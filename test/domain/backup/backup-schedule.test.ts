/** Backups by time: due by what lies in the directory, and none goes that the schedule of this vault did not make. */
import assert from 'node:assert/strict';
import {
  copyFileSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { system } from '../../../src/domain/audit/audit.ts';
import type { BackupOrder } from '../../../src/domain/backup/backup.ts';
import { lastBackupAt } from '../../../src/domain/backup/backup-age.ts';
import { backupName, backupsIn } from '../../../src/domain/backup/backup-directory.ts';
import { checkBackup, readManifestPage, sealDraft } from '../../../src/domain/backup/backup-file.ts';
import { pageSize } from '../../../src/domain/backup/backup-manifest.ts';
import { type BackupPlan, backUpByPlan, nextDueAt } from '../../../src/domain/backup/backup-schedule.ts';
import { ensureIdentity } from '../../../src/domain/instance/vault-identity.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { addCertificates } from '../../harness/database/marked-vault.ts';
import { copyDatabase, databaseOf } from '../../harness/database/tested-engine.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

async function planned(t: TestContext, keep = 2) {
  const opened = await testVault(t);
  const { vault } = opened;
  const plan: BackupPlan = { directory: tempDir(t), every: day, keep };
  const order: BackupOrder = {
    actor: system,
    version: '0.0.0-test',
    verify: (draft, masterKey) => checkBackup(draft, masterKey),
  };
  const look = () => backUpByPlan(vault, plan, order);
  const run = async () => (await look()).made;
  return { ...opened, plan, look, run, names: () => readdirSync(plan.directory).sort() };
}

/** Makes a backup what a vault without ids would have written. */
async function stripId(file: string, { keyring }: Vault): Promise<void> {
  const page = readManifestPage(file);
  assert.ok(typeof page === 'object');
  const { vault_id: _, ...manifest } = page.manifest;
  truncateSync(file, statSync(file).size - pageSize);
  await sealDraft(file, manifest, keyring.current);
  assert.doesNotMatch(readFileSync(file, 'latin1').slice(-pageSize), /vault_id/);
}

async function removeCertificate({ db }: Vault, name: string): Promise<void> {
  await db.write((writer) => writer.deleteFrom('certificates').where('name', '=', name).execute());
}

test('a backup name contains its UTC time to the second', () => {
  assert.equal(backupName(Date.parse('2026-11-21T18:00:07.900Z')), 'vault-20261121T180007Z.backup');
});

for (const [what, ages, expected] of [
  ['there is no backup', [], true],
  ['one was just made', [0], false],
  ['one is almost a period old', [day - 1], false],
  ['the newest is a period old', [day, 2 * day], true],
  ['one is dated in the future', [-hour], true],
  ['one is dated in the future and one is an hour old', [-hour, hour], false],
] as const) {
  test(`a backup is ${expected ? '' : 'not '}due when ${what}`, () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    const own = ages.map((age) => ({ path: '', at: now - age }));
    assert.equal(nextDueAt(own, { every: day }, now) <= now, expected);
  });
}

test('one backup is created per day, and the oldest are removed beyond the limit', async (t) => {
  const { run, names, world } = await planned(t);
  assert.match((await run()) ?? '', /vault-20261121T120000Z\.backup$/);
  assert.equal(await run(), undefined);
  world.advance(day - minute);
  assert.equal(await run(), undefined);
  world.advance(minute);
  assert.ok(await run());
  assert.deepEqual(names(), ['vault-20261121T120000Z.backup', 'vault-20261122T120000Z.backup']);
  world.advance(day);
  await run();
  assert.deepEqual(names(), ['vault-20261122T120000Z.backup', 'vault-20261123T120000Z.backup']);
});

test('files with other names, from other vaults or without a manifest are kept and do not count', async (t) => {
  const other = await planned(t);
  const theirs = (await other.run()) ?? '';
  const { run, names, world, plan } = await planned(t, 1);
  const put = (name: string, from = theirs) => copyFileSync(from, join(plan.directory, name));
  put('vault-20200101T000000Z.backup');
  writeFileSync(join(plan.directory, 'vault-20200102T000000Z.backup'), 'dear all');
  const first = (await run()) ?? '';
  put('before-the-move.backup', first);
  world.advance(day);
  await run();
  assert.deepEqual(names(), [
    'before-the-move.backup',
    'vault-20200101T000000Z.backup',
    'vault-20200102T000000Z.backup',
    'vault-20261122T120000Z.backup',
  ]);
});

test('backups dated in the future are removed before newer ones, and a smaller backup is still set aside', async (t) => {
  const { vault, run, look, names, world } = await planned(t);
  await addCertificates(vault, 'a', 'b', 'c');
  world.advance(30 * day);
  await run();
  world.advance(day);
  await run();
  world.advance(-31 * day);
  const real: (string | undefined)[] = [];
  for (let made = 0; made < 3; made += 1) {
    real.push(await run());
    world.advance(day);
  }
  assert.deepEqual(
    names(),
    real.slice(1).map((path) => basename(path ?? '')),
  );
  await vault.db.write((writer) => writer.deleteFrom('certificates').execute());
  const { made, setAside } = await look();
  assert.equal(setAside?.path, made);
  assert.deepEqual(setAside?.before.certificates, 3);
});

test('a vault with a new id removes no backup of the vault before it', async (t) => {
  const { run, names, world, vault, plan } = await planned(t, 1);
  await addCertificates(vault, 'a', 'b', 'c');
  await run();
  await vault.db.write((writer) => ensureIdentity(writer, world));
  world.advance(day);
  await run();
  world.advance(day);
  await run();
  assert.deepEqual(names(), ['vault-20261121T120000Z.backup', 'vault-20261123T120000Z.backup']);
  assert.deepEqual(
    (await backupsIn(vault, plan.directory)).own.map(({ holds }) => holds),
    [{ certificates: 3, versions: 3 }],
  );
});

test('backups without a vault id are compared in size and never removed', async (t) => {
  const { run, names, world, vault, plan } = await planned(t, 1);
  await addCertificates(vault, 'a', 'b', 'c');
  const file = (await run()) ?? '';
  await stripId(file, vault);
  for (const name of ['a', 'b', 'c']) await removeCertificate(vault, name);
  world.advance(day);
  assert.equal(await run(), join(plan.directory, 'vault-20261122T120000Z.smaller.backup'));
  await addCertificates(vault, 'a', 'b', 'c');
  for (let days = 0; days < 2; days += 1) {
    world.advance(day);
    await run();
  }
  assert.deepEqual(names(), [
    'vault-20261121T120000Z.backup',
    'vault-20261122T120000Z.smaller.backup',
    'vault-20261124T120000Z.backup',
  ]);
});

test('a much smaller backup is set aside, does not count and removes no other until it gets the usual name', async (t) => {
  const { look, names, world, vault, plan } = await planned(t, 1);
  await addCertificates(vault, 'a', 'b', 'c');
  await look();
  const last = await lastBackupAt(vault.db.reader);
  await removeCertificate(vault, 'a');
  world.advance(day);
  assert.equal((await look()).setAside, undefined, 'two of three are not much less');
  for (const name of ['b', 'c']) await removeCertificate(vault, name);
  world.advance(day);
  const { made, setAside } = await look();
  const aside = join(plan.directory, 'vault-20261123T120000Z.smaller.backup');
  assert.equal(made, aside);
  const holds = { certificates: 0, versions: 3 };
  assert.deepEqual(setAside, { path: aside, holds, before: { certificates: 2, versions: 3 } });
  assert.equal(await lastBackupAt(vault.db.reader), (last ?? 0) + day, 'it does not count as the last');
  assert.deepEqual((await look()).setAside, setAside, 'nothing is due, and it is still so');
  assert.deepEqual(names(), ['vault-20261122T120000Z.backup', 'vault-20261123T120000Z.smaller.backup']);
  for (let days = 0; days < 3; days += 1) {
    world.advance(day);
    await look();
  }
  assert.deepEqual(
    names(),
    ['vault-20261122T120000Z.backup', 'vault-20261126T120000Z.smaller.backup'],
    'of those set aside the newest stays: it has all that the others had',
  );
  renameSync(
    join(plan.directory, 'vault-20261126T120000Z.smaller.backup'),
    join(plan.directory, 'vault-20261126T120000Z.backup'),
  );
  world.advance(day);
  assert.equal((await look()).setAside, undefined);
  assert.deepEqual(names(), ['vault-20261127T120000Z.backup']);
});

test('a set-aside backup that holds more than the newest one stays', async (t) => {
  const { run, names, world, vault } = await planned(t, 1);
  await addCertificates(vault, 'a', 'b', 'c', 'd', 'e');
  await run();
  for (const name of ['a', 'b', 'c']) await removeCertificate(vault, name);
  world.advance(day);
  await run();
  await removeCertificate(vault, 'd');
  world.advance(day);
  await run();
  assert.deepEqual(names(), [
    'vault-20261121T120000Z.backup',
    'vault-20261122T120000Z.smaller.backup',
    'vault-20261123T120000Z.smaller.backup',
  ]);
});

test('two clones with one backup directory detect each other and remove no backup of the other', async (t) => {
  const { look, names, world, plan, dataDir } = await planned(t, 1);
  await look();
  const copy = tempDir(t);
  const files = databaseOf(dataDir) === undefined ? ['vault.db', 'master.key'] : ['master.key'];
  for (const name of files) copyFileSync(join(dataDir, name), join(copy, name));
  await copyDatabase(dataDir, copy);
  world.advance(minute);
  const clone = await testVault(t, { dataDir: copy, world });
  await clone.vault.db.write((writer) => ensureIdentity(writer, world));
  const lookAsClone = () =>
    backUpByPlan(clone.vault, plan, {
      actor: system,
      version: '0.0.0-test',
      verify: (draft, masterKey) => checkBackup(draft, masterKey),
    });
  world.advance(minute);
  const first = await lookAsClone();
  assert.equal(first.clone, undefined, 'what the vault made before it was cloned is of no clone');
  world.advance(day);
  const { made, clone: seen } = await look();
  assert.equal(seen, first.made);
  world.advance(minute);
  assert.equal((await lookAsClone()).clone, made);
  assert.equal(names().length, 2);
});

test('a missing backup directory is not created: the disk may not be mounted', async (t) => {
  const { run, plan } = await planned(t);
  const gone = join(plan.directory, 'gone');
  await assert.rejects(
    async () =>
      backUpByPlan(
        (await testVault(t)).vault,
        { ...plan, directory: gone },
        {
          actor: system,
          version: '',
          verify: async () => undefined,
        },
      ),
    /cannot read the backup directory \S+gone: no such file or directory/,
  );
  assert.ok(await run());
});
