/** Backups by time: due by what lies in the directory, and none goes that the schedule of this vault did not make. */
import assert from 'node:assert/strict';
import { copyFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../src/base/duration.ts';
import { system } from '../../src/domain/audit.ts';
import type { BackupOrder } from '../../src/domain/backup.ts';
import { checkBackup } from '../../src/domain/backup-file.ts';
import { backupName } from '../../src/domain/backup-directory.ts';
import { type BackupPlan, backUpByPlan, isDue } from '../../src/domain/backup-schedule.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { testVault } from '../harness/test-vault.ts';

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

test('names tell the moment in UTC, to the second', () => {
  assert.equal(backupName(Date.parse('2026-11-21T18:00:07.900Z')), 'vault-20261121T180007Z.backup');
});

for (const [what, ages, expected] of [
  ['nothing is there', [], true],
  ['one was just made', [0], false],
  ['one is almost a period old', [day - 1], false],
  ['the newest is a period old', [day, 2 * day], true],
  ['one is from the future', [-hour], true],
  ['one is from the future and one is young', [-hour, hour], false],
] as const) {
  test(`a backup is ${expected ? '' : 'not '}due when ${what}`, () => {
    const now = Date.parse('2026-11-21T12:00:00Z');
    const own = ages.map((age) => ({ path: '', at: now - age }));
    assert.equal(isDue(own, { every: day }, now), expected);
  });
}

test('one is made a day, and the oldest go when there are too many', async (t) => {
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

test('files of other names, of other vaults and without a manifest stay, and count for nothing', async (t) => {
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

test('the one just made stays, also where a clock that was ahead left newer ones', async (t) => {
  const { run, names, world } = await planned(t, 1);
  world.advance(30 * day);
  await run();
  world.advance(-30 * day);
  await run();
  assert.deepEqual(names(), ['vault-20261121T120000Z.backup', 'vault-20261221T120000Z.backup']);
});

test('a directory that is not there is not made: the disk may not be mounted', async (t) => {
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
    /ENOENT/,
  );
  assert.ok(await run());
});
