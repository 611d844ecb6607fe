/**
 * Backups that cannot be finished: a full disk, a kill at any moment. What has the name is whole, or nothing has it.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readBackup } from '../../../../src/domain/backup/backup-file.ts';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { fromSource, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

/**
 * In a namespace where $DIR is a file system with room for less than a backup: a backup there, and a restore to there.
 */
const script = `
  mount -t tmpfs -o size=100k,mode=700 tmpfs "$DIR" || exit 99
  "$NODE" "$MAIN" backup --data-dir "$DATA" "$DIR/x.backup"; echo "backup $?" >&3
  "$NODE" "$MAIN" restore --data-dir "$DIR/data" --master-key-file "$DATA/master.key" "$BACKUP"; echo "restore $?" >&3
  find "$DIR" -type f | wc -l >&3
`;

test(
  'a backup or restore on a full disk leaves no files and reports the lack of space',
  mayMount(),
  async (t) => {
    const { data, done } = commandLine(t);
    await done('certificate', 'create', '--name=web', '--domain=a.test');
    const backup = join(dirname(data), 'good.backup');
    await done('backup', backup);
    const [NODE, MAIN] = fromSource;
    const result = spawnSync('unshare', ['--mount', '--map-root-user', 'sh', '-c', script], {
      env: { ...process.env, DIR: tempDir(t), DATA: data, BACKUP: backup, NODE, MAIN },
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    });
    const said = (result.output[3] ?? '')
      .trimEnd()
      .split('\n')
      .map((line) => line.trim());
    assert.deepEqual(said, ['backup 1', 'restore 1', '0'], result.stderr);
    assert.match(
      result.stderr,
      /^vault: not enough space for the backup at .*x\.backup\n {2}Free some space, or/m,
    );
    assert.match(
      result.stderr,
      /^vault: cannot restore to .*data: no space left on device\n {2}Free some space\./m,
    );
    assert.equal((await vault(['restore', backup, '--check', '--data-dir', data])).code, 0);
  },
);

test('a backup that is killed at any moment is complete or absent', async (t) => {
  const { data, done } = commandLine(t);
  await done('certificate', 'create', '--name=web', '--domain=a.test');
  const dir = join(dirname(data), 'backups');
  const killer = fileURLToPath(new URL('../../../harness/processes/kill-at.ts', import.meta.url));
  const [node, main] = fromSource;
  const seen: string[] = [];
  for (let step = 1; ; step++) {
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir);
    const args = ['--import', killer, main, 'backup', join(dir, 'x.backup'), '--data-dir', data];
    const env = { ...process.env, KILL_AT: String(step), KILL_UNDER: dir };
    const { signal, status, stderr } = spawnSync(node, args, { env, encoding: 'utf8' });
    assert.ok(signal === 'SIGKILL' || status === 0, stderr);
    const names = readdirSync(dir).filter((name) => !/^\.vault-backup-.*\.draft/.test(name));
    if (names.length > 0)
      assert.equal((await readBackup(join(dir, 'x.backup'))).manifest.counts.certificates, 1);
    seen.push(names.join());
    // What comes after only removes the draft's name and its traces.
    if (signal === null || seen.slice(-2).every((name) => name !== '')) break;
  }
  assert.equal(seen[0], '');
  assert.equal(seen.at(-1), 'x.backup');
  assert.ok(seen.length >= 5, `${seen.length} steps: ${seen}`);
});

function mayMount(): { skip?: string } {
  const args = ['--mount', '--map-root-user', 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt'];
  const { status } = spawnSync('unshare', args, { stdio: 'ignore' });
  return status === 0 ? {} : { skip: 'this user may not mount a file system' };
}
