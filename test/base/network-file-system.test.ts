/** Which file systems are network file systems, by what Linux says about its mounts. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { networkFileSystem, typeOfMount } from '../../src/base/network-file-system.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { fromExecutable, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

/** As the kernel writes it; the optional fields before the hyphen are none, one or several. */
const mountinfo = `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /srv rw,relatime shared:1 - nfs4 files:/srv rw,vers=4.2
31 30 0:41 / /srv/local rw shared:1 master:2 - xfs /dev/vdb rw
32 22 0:42 / /mnt/two\\040words rw - cifs //files/share rw
33 22 0:43 / /mnt/home rw - fuse.sshfs me@far: rw
34 22 0:44 / /mnt/over rw - ext4 /dev/vdc rw
35 22 0:45 / /mnt/over rw - 9p share rw
`;

for (const [path, type] of [
  ['/', 'ext4'],
  ['/srvs', 'ext4'],
  ['/srv', 'nfs4'],
  ['/srv/vault/data', 'nfs4'],
  ['/srv/local/data', 'xfs'],
  ['/mnt/two words/data', 'cifs'],
  ['/mnt/home', 'fuse.sshfs'],
  ['/mnt/over/data', '9p'],
] as const) {
  test(`${path} is on ${type}`, () => assert.equal(typeOfMount(mountinfo, path), type));
}

test('typeOfMount returns undefined for an empty list of mounts', () => {
  assert.equal(typeOfMount('', '/srv'), undefined);
});

test('networkFileSystem returns undefined for local directories, including missing ones', (t) => {
  assert.equal(networkFileSystem(tempDir(t)), undefined);
  assert.equal(networkFileSystem(join(tempDir(t), 'not', 'there')), undefined);
});

/** Runs the executable in a mount namespace where the list of mounts says that `dir` is of this type. */
function runOn(type: string, dir: string, args: readonly string[]) {
  const fake = join(dir, '..', `mountinfo-${type}`);
  writeFileSync(fake, `1 0 8:1 / / rw - ext4 /dev/sda rw\n2 1 0:9 / ${dir} rw - ${type} far:/x rw\n`);
  const script = 'mount --bind "$0" /proc/$$/mountinfo && exec "$@"';
  return spawnSync('unshare', ['-m', 'sh', '-c', script, fake, ...fromExecutable, ...args], {
    encoding: 'utf8',
  });
}

const canMount =
  process.getuid?.() === 0
    ? needs('unshare')
    : ({ skip: 'only root may mount over a list of mounts' } as const);

test(
  'commands reject a database on a network file system and print the reason and the fix',
  canMount,
  async (t) => {
    const root = tempDir(t);
    const dir = join(root, 'far');
    mkdirSync(dir, { mode: 0o700 });
    const backup = join(root, 'x.backup');
    const local = join(root, 'local');
    for (const words of [
      ['certificate', 'create', '--name=a', '--domain=a.test'],
      ['backup', backup],
    ]) {
      assert.equal((await vault([...words, '--data-dir', local])).code, 0);
    }
    for (const type of ['nfs', 'nfs4', 'cifs', 'smb3', 'fuse.sshfs', '9p', 'ceph', 'fuse.glusterfs']) {
      const { status, stderr } = runOn(type, dir, ['certificate', 'list', '--data-dir', dir]);
      assert.equal(status, 1, stderr);
      assert.match(
        stderr,
        new RegExp(`^vault: the database in ${dir} is on a network file system \\(${type}\\)`),
      );
      assert.match(
        stderr,
        / copy the directory to a local disk\n {2}\(cp -a .*--data-dir.*\n {2}Nothing was changed\.\n$/,
      );
    }
    for (const words of [
      ['serve', '--listen=127.0.0.1:0'],
      ['certificate', 'create', '--name=b', '--domain=b.test'],
      ['restore', backup, '--master-key-file', join(local, 'master.key')],
      ['master-key', 'status'],
    ]) {
      const { status, stderr } = runOn('nfs4', dir, [...words, '--data-dir', dir]);
      assert.equal(status, 1, `${words.join(' ')}: ${stderr}`);
      assert.match(stderr, /is on a network file system \(nfs4\)/, words.join(' '));
    }
    assert.deepEqual(readdirSync(dir), [], 'nothing was created there');
    const doctor = runOn('nfs4', dir, ['doctor', '--offline', '--data-dir', dir]);
    assert.match(doctor.stdout, /^FAILED +permissions +the database in \S+ is on a network file system/m);
    const onto = runOn('nfs4', dir, ['backup', join(dir, 'x.backup'), '--data-dir', local]);
    assert.equal(onto.status, 0, `backups may lie there: ${onto.stderr}`);
  },
);
