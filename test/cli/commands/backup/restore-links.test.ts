/**
 * `vault restore` where database and master key are symbolic links: both stay on the disks that were chosen for them.
 */
import assert from 'node:assert/strict';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';

/** A vault with the certificate `before`, a backup of it, and links to files in two other directories. */
async function linked(t: TestContext) {
  const line = commandLine(t);
  const dir = dirname(line.data);
  const backup = join(dir, 'x.backup');
  const phrase = line.file('several words in a row', 'phrase');
  await line.done('certificate', 'create', '--name=before', '--domain=a.test');
  await line.done('backup', backup, '--with-master-key', '--passphrase-file', phrase);
  await line.done('certificate', 'create', '--name=after', '--domain=a.test');
  const links = (['vault.db', 'master.key'] as const).map((name) => {
    const [path, disk] = [join(line.data, name), join(dir, `disk of ${name}`)];
    const real = join(disk, name);
    mkdirSync(disk, { mode: 0o700 });
    renameSync(path, real);
    symlinkSync(real, path);
    return { path, real, disk };
  });
  const [database, key] = links;
  assert(database && key);
  const restore = ['restore', backup, '--replace', '--passphrase-file', phrase];
  const names = async () =>
    (await line.json<{ name: string }[]>('certificate', 'list')).map(({ name }) => name);
  return { ...line, database, key, restore, names };
}

test('restore over symbolic links replaces their targets and keeps copies next to them', async (t) => {
  const { database, key, restore, done, names, data } = await linked(t);
  assert.deepEqual(await names(), ['after', 'before']);
  // Another key, so that the one in the backup is needed.
  await done('master-key', 'rotate');
  for (const name of readdirSync(key.disk))
    if (name !== 'master.key') renameSync(join(key.disk, name), join(dirname(data), name));
  const { stderr } = await done(...restore);
  assert.deepEqual(await names(), ['before']);
  for (const { path, real, disk } of [database, key]) {
    assert.equal(lstatSync(path).isSymbolicLink() && readlinkSync(path), real);
    assert.equal(lstatSync(real).mode & 0o777, 0o600);
    const kept = readdirSync(disk).find((name) => name.includes('.before-restore-'));
    assert(kept !== undefined && !lstatSync(join(disk, kept)).isSymbolicLink());
    assert(stderr.includes(`Kept: ${join(disk, kept)}\n`), stderr);
  }
});

test('restore over a dangling symbolic link is rejected, and nothing is created at its target', async (t) => {
  const { database, restore, run } = await linked(t);
  const gone = `${database.disk} gone`;
  renameSync(database.disk, gone);
  mkdirSync(database.disk);
  const { code, stderr } = await run(...restore);
  assert.equal(code, 1);
  assert.equal(
    stderr,
    `vault: ${database.path} is a symbolic link to ${database.real}, which is missing\n` +
      '  Mount the disk of the target, or remove the link. Nothing was changed.\n',
  );
  assert(!existsSync(database.real));
});
