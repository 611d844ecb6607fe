/** Errors of the disk or the file system: all files are replaced or none, and the next run recovers. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { assertPair, leftovers, type Machine, machine, modeOf } from '../harness/client/installer.ts';
import { type ClientVault, clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';

const isRoot = process.getuid?.() === 0;
const whenRoot = isRoot ? {} : { skip: 'only root can mount file systems' };

/** A job with version 1 on disk, and version 2 in the vault. */
async function withNews(
  t: TestContext,
  client = machine(t),
): Promise<{ vault: ClientVault; client: Machine; old: string[] }> {
  const vault = await clientVault(t);
  const reload = ['--reload-command', `echo x >>${client.home}/reloads`];
  const installed = await vault.install(client, reload);
  assert.equal(installed.code, 0, installed.stderr);
  await vault.renew();
  return { vault, client, old: [client.file('tls.crt'), client.file('tls.key')] };
}

async function heals(client: Machine, old: readonly string[]): Promise<void> {
  const next = await client.run(['--run']);
  assert.equal(next.code, 0, next.stderr);
  assert.notEqual(client.file('tls.crt'), old[0]);
  assertPair(client);
  assert.deepEqual(leftovers(client), []);
}

test(
  'a rename that fails halfway restores the old files, and the reload does not run',
  needs('mv'),
  async (t) => {
    const { client, old } = await withNews(t);
    // The first rename succeeds; the second fails.
    client.fake(
      'mv',
      `case "$*" in *tls.key*tls/) /bin/mv -f "$2" "$4"; echo "mv: No space left" >&2; exit 1 ;; esac; exec /bin/mv "$@"`,
    );
    rmSync(join(client.home, 'reloads'));
    const failed = await client.run(['--run']);
    assert.equal(failed.code, 12, failed.stderr);
    assert.match(failed.stderr, /the old files are unchanged: mv: No space left/);
    assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], old);
    assert.equal(existsSync(join(client.home, 'reloads')), false);
    rmSync(join(client.bin, 'mv'));
    await heals(client, old);
    assert(existsSync(join(client.home, 'reloads')));
  },
);

test(
  'the next run undoes a power cut between two renames, even without the vault',
  needs('mv'),
  async (t) => {
    const { vault, client, old } = await withNews(t);
    client.fake(
      'mv',
      `case "$*" in *tls.key*tls/) /bin/mv -f "$2" "$4"; kill -9 $PPID ;; *) exec /bin/mv "$@" ;; esac`,
    );
    assert.equal((await client.run(['--run'])).code, null);
    assert.notEqual(client.file('tls.crt'), old[0]);
    rmSync(join(client.bin, 'mv'));
    await vault.stop();
    assert.equal(
      (await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } })).code,
      10,
    );
    assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], old);
  },
);

test('a directory with the name of a file is not replaced', needs('mv'), async (t) => {
  const { client, old } = await withNews(t);
  rmSync(join(client.destination, 'tls.key'));
  mkdirSync(join(client.destination, 'tls.key'));
  const failed = await client.run(['--run']);
  assert.equal(failed.code, 12, failed.stderr);
  assert.equal(client.file('tls.crt'), old[0]);
  rmSync(join(client.destination, 'tls.key'), { recursive: true });
  await heals(client, old);
});

test('a full disk leaves the old pair, and the next run recovers', whenRoot, async (t) => {
  // Hooks run in the order in which they are added, so this one runs before the directory is removed.
  let mounted = '';
  t.after(() => mounted !== '' && execFileSync('umount', [mounted]));
  const client = machine(t);
  mkdirSync(client.destination);
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=0755', 'tmpfs', client.destination]);
  mounted = client.destination;
  const { old } = await withNews(t, client);
  const filler = join(client.destination, 'filler');
  try {
    writeFileSync(filler, Buffer.alloc(128 * 1024));
  } catch {
    // Expected: the disk is full now.
  }
  const failed = await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } });
  assert.notEqual(failed.code, 0);
  assert.deepEqual([client.file('tls.crt'), client.file('tls.key')], old);
  // Room for the downloads, but not for the backups of the old files.
  writeFileSync(filler, Buffer.alloc(36 * 1024));
  await client.run(['--run'], { environment: { CERTIFICATE_VAULT_FETCH_TRIES: '1' } });
  assertPair(client);
  rmSync(filler);
  await heals(client, old);
});

test(
  'a file system without modes and without renames across directories works, such as Proxmox’s',
  needs('mv'),
  async (t) => {
    const client = machine(t);
    client.fake(
      'chmod',
      `case "$*" in *${client.destination}/*) echo "chmod: Operation not permitted" >&2; exit 1 ;; esac; exec /bin/chmod "$@"`,
    );
    client.fake(
      'mv',
      `case "$*" in *vault-staging*) echo "mv: Operation not permitted" >&2; exit 1 ;; esac
    exec /bin/mv "$@"`,
    );
    client.fake(
      'cp',
      `case "$1" in -p) shift; /bin/cp "$@"; echo "cp: preserving permissions: Operation not permitted" >&2; exit 1 ;; esac; exec /bin/cp "$@"`,
    );
    const { old } = await withNews(t, client);
    await heals(client, old);
    assert.equal(modeOf(join(client.destination, 'tls.key')), 0o600);
  },
);

test('destinations that any user can write to are rejected', needs('find'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  mkdirSync(client.destination);
  execFileSync('chmod', ['0777', client.destination]);
  const refused = await vault.install(client);
  assert.equal(refused.code, 12, refused.stderr);
  assert.match(refused.stderr, /any user can write to/);
  assert.deepEqual(readdirSync(client.destination), []);
  assert.deepEqual(client.jobs(), []);
});

test(
  'owner, group and mode are set, and restored after a change, without rewriting files',
  whenRoot,
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    assert.equal(
      (await vault.install(client, ['--owner', 'nobody', '--group', 'daemon', '--mode', '0640'])).code,
      0,
    );
    const path = (name: string) => join(client.destination, name);
    const about = (name: string) => {
      const { uid, gid, ino } = statSync(path(name));
      return { uid, gid, ino, mode: modeOf(path(name)) };
    };
    const [certificate, key] = [about('tls.crt'), about('tls.key')];
    assert.equal(certificate.mode, 0o640);
    assert.equal(key.mode, 0o600);
    assert.equal(key.uid, 65534);
    assert.equal(key.gid, 1);
    execFileSync('chmod', ['0644', path('tls.key')]);
    execFileSync('chown', ['0:0', path('tls.key')]);
    assert.equal((await client.run(['--run'])).code, 0);
    assert.deepEqual([about('tls.crt'), about('tls.key')], [certificate, key]);
  },
);

test('an installation and a run sync only their own files', needs('curl'), async (t) => {
  const vault = await clientVault(t);
  const client = machine(t);
  // Without a path, sync writes every file system of the machine.
  client.fake('sync', `echo "sync $*" >>"${client.home}/synced"; PATH="${process.env.PATH}" exec sync "$@"`);
  const installed = await vault.install(client);
  assert.equal(installed.code, 0, installed.stderr);
  await vault.renew();
  assert.equal((await client.run(['--run'])).code, 0);
  const synced = readFileSync(join(client.home, 'synced'), 'utf8').trimEnd().split('\n');
  assert(synced.length > 10, `${synced.length} calls`);
  for (const call of synced)
    assert(call.startsWith(`sync ${client.home}/`) || call.startsWith('sync job '), call);
});
