/** Master keys and scheduled backups: a rotation makes a backup with the new key, and a key that backups need stays. */
import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../../harness/eventually.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { serve } from '../../../harness/processes/vault-process.ts';

type Status = { keys: { id: string; state: string; files: unknown[] }[] };

/** A vault with a certificate and a backup directory in its settings file. */
async function withBackups(t: TestContext, { isKnown = true } = {}) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  const dir = join(dirname(line.data), 'backups');
  mkdirSync(dir);
  if (isKnown) writeFileSync(join(line.data, 'vault.yaml'), `backup_dir: ${dir}\n`, { mode: 0o600 });
  const current = async () => {
    const { keys } = await line.json<Status>('master-key', 'status');
    return keys.find(({ state }) => state === 'current')?.id ?? assert.fail('no key');
  };
  const backups = () => readdirSync(dir).filter((name) => /^vault-.*\.backup$/.test(name));
  const doctor = async () => {
    const { stdout } = await line.run('doctor', '--offline', '--json');
    const { findings } = JSON.parse(stdout) as { findings: { check: string; status: string }[] };
    return findings.filter(({ check }) => check === 'backup').map(({ status }) => status);
  };
  return { ...line, dir, current, backups, doctor };
}

test('a key rotation with a running server creates a backup that needs only the new key', async (t) => {
  const { data, dir, done, refused, current, backups } = await withBackups(t, { isKnown: false });
  const server = await serve(t, data, { args: ['--backup-dir', dir] });
  const [first] = await eventually('the first backup', () => (backups().length > 0 ? backups() : undefined));
  const old = await current();
  const rotated = await done('master-key', 'rotate');
  assert.match(rotated.stderr, /\nCreated a backup that needs the new key only: /);
  const next = backups().find((name) => name !== first) ?? assert.fail('no second backup');
  assert.match((await done('restore', join(dir, next), '--check')).stderr, new RegExp(await current()));
  assert.match((await done('restore', join(dir, first ?? ''), '--check')).stderr, new RegExp(old));
  await refused(
    ['master-key', 'remove', '--yes', '--id', old],
    /^vault: 1 backup .* cannot be restored without master key/,
  );
  await server.end();
});

test('a master key that a scheduled backup needs is removed only with --force', async (t) => {
  const { dir, done, refused, current, backups, doctor } = await withBackups(t);
  const first = await current();
  const made = await done('master-key', 'rotate');
  assert.match(made.stderr, /\nCreated a backup that needs the new key only: \S+\/vault-\S+\.backup\n$/);
  const [backup] = backups();
  const second = await current();
  await done('master-key', 'rotate');
  const third = await current();
  assert.equal(backups().length, 2);
  const remove = ['master-key', 'remove', '--yes', '--id'];
  await refused(
    [...remove, second],
    `vault: 1 backup (${backup}) cannot be restored without master key ${second}\n` +
      '  Nothing was removed. Wait until newer backups replace them, or accept the loss with --force.\n',
  );
  await refused([...remove, third], /is needed by \d secrets in the vault/);
  assert.match((await done(...remove, first)).stderr, /^Removed: /, 'no scheduled backup needs this one');
  assert.deepEqual(await doctor(), ['ok']);
  const forced = await done(...remove, second, '--force');
  assert.match(
    forced.stderr,
    /^Lost: 1 backup \(vault-\S+\.backup\) cannot be restored without a copy of the key\.\nRemoved: /,
  );
  assert.deepEqual(await doctor(), ['ok'], 'the last backup needs the current key');
  rmSync(join(dir, backups().find((name) => name !== backup) ?? ''));
  assert.deepEqual(await doctor(), ['failed'], 'the only backup left is lost');
});

test('a key is not removed while the backup directory cannot be read, nor without --yes', async (t) => {
  const { dir, data, done, refused, current } = await withBackups(t);
  const old = await current();
  await done('master-key', 'rotate');
  const remove = ['master-key', 'remove', '--id', old];
  await refused(
    remove,
    /^vault: refusing without confirmation: Remove master key \w+\? .*\n {2}Add --yes to confirm\. Nothing was changed\.\n$/,
  );
  rmSync(dir, { recursive: true });
  await refused([...remove, '--yes'], /^vault: cannot read the backup directory /);
  const names = readdirSync(data);
  assert(
    names.some((name) => name.includes(old)),
    names.join(' '),
  );
  await done(...remove, '--yes', '--force');
});
