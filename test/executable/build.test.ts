/**
 * The executable where it is hard to start one: without a home, from a folder that nobody may change, with temporary
 * directories that are full of strangers, unwritable or missing. Everything here runs as a user without any rights.
 * That two builds are equal is in reproducible-build.test.ts, what is inside in inventory.test.ts.
 */
import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

const root = join(import.meta.dirname, '..', '..');
const manifest = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'));
const isRoot = process.getuid?.() === 0;
/** As root: a user that no /etc/passwd knows, as container platforms hand them out. */
const user = isRoot ? { uid: 54_321, gid: 54_321 } : {};

const dir = fs.mkdtempSync(join(tmpdir(), 'executable-'));
const program = join(dir, 'bin', 'vault');
const data = join(dir, 'data');
const temporary = join(dir, 'temporary');
const forbidden = join(dir, 'forbidden');
const absent = join(dir, 'absent');
const list = ['certificate', 'list', '--json', '--data-dir', data];

after(() => {
  fs.chmodSync(join(dir, 'bin'), 0o755);
  fs.rmSync(dir, { recursive: true });
});

function ownFolder(path: string): void {
  fs.mkdirSync(path, { recursive: true, mode: 0o700 });
  if (isRoot) fs.chownSync(path, user.uid ?? 0, user.gid ?? 0);
}

/** What the command said with exactly these variables in its environment. */
function vault(args: string[], env: NodeJS.ProcessEnv = { TMPDIR: temporary }) {
  return spawnSync(program, args, { ...user, env, encoding: 'utf8' });
}

function assertLists(env: NodeJS.ProcessEnv): void {
  const { status, stdout, stderr } = vault(list, env);
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  assert.deepEqual(namesIn(stdout), ['a']);
}

function namesIn(json: string): string[] {
  return (JSON.parse(json) as { name: string }[]).map(({ name }) => name);
}

fs.chmodSync(dir, 0o755);
fs.mkdirSync(join(dir, 'bin'));
fs.copyFileSync(join(root, 'dist', 'vault'), program, fs.constants.COPYFILE_FICLONE);
fs.chmodSync(join(dir, 'bin'), 0o555);
for (const path of [data, temporary]) ownFolder(path);
fs.mkdirSync(forbidden, { mode: 0o555 });
const made = vault(['certificate', 'create', '--name', 'a', '--domain', 'a.test', '--data-dir', data]);
assert.equal(made.status, 0, made.stderr);

test('the executable prints the version of package.json', () => {
  const { status, stdout } = vault(['--version']);
  assert.deepEqual({ status, stdout }, { status: 0, stdout: `${manifest.version}\n` });
});

test('the executable runs without HOME, with a missing HOME and with a read-only HOME', () => {
  assertLists({});
  assertLists({ HOME: absent });
  assertLists({ HOME: forbidden });
});

test('the executable runs from a directory that its user cannot write to', () => {
  const probe = spawnSync('touch', [join(dir, 'bin', 'probe')], { ...user });
  assert.notEqual(probe.status, 0);
  assertLists({ TMPDIR: temporary });
});

test('twelve processes of the executable run at the same time', async () => {
  const run = promisify(execFile);
  const options = { ...user, env: { TMPDIR: temporary } };
  const runs = await Promise.all(Array.from({ length: 12 }, () => run(program, list, options)));
  for (const { stdout } of runs) assert.deepEqual(namesIn(stdout), ['a']);
});

test('the executable does not load native code planted in HOME or PKG_NATIVE_CACHE_PATH', () => {
  const home = join(dir, 'poisoned');
  const addon = join(
    root,
    'node_modules/better-sqlite3/prebuilds',
    `${process.platform}-${process.arch}.node`,
  );
  const cache = join(
    home,
    '.cache',
    'pkg',
    createHash('sha256').update(fs.readFileSync(addon)).digest('hex'),
  );
  ownFolder(cache);
  const names = ['sqlite.node', `${process.platform}-${process.arch}.node`, 'better_sqlite3.node'];
  for (const name of names) fs.writeFileSync(join(cache, name), 'garbage');
  assertLists({ HOME: home, PKG_NATIVE_CACHE_PATH: join(home, '.cache'), TMPDIR: temporary });
  for (const name of names) assert.equal(fs.readFileSync(join(cache, name), 'utf8'), 'garbage');
});

test('the executable leaves no file in TMPDIR', () => {
  assertLists({ TMPDIR: temporary });
  assert.deepEqual(fs.readdirSync(temporary), []);
});

test('the executable tries the next directory if TMPDIR is read-only, missing or a file', () => {
  assertLists({ TMPDIR: forbidden });
  assertLists({ TMPDIR: absent });
  assertLists({ TMPDIR: program });
});

test('the executable tries the next directory if TMPDIR is mounted noexec', mayMount(), () => {
  const { status, stdout, stderr } = listWithNoexec([temporary], { TMPDIR: temporary });
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  assert.deepEqual(namesIn(stdout), ['a']);
});

test('SQLite is loaded from the data directory if no other directory allows it', mayMount(), () => {
  const { status, stdout, stderr } = listWithNoexec(['/dev/shm', '/var/tmp'], { TMPDIR: forbidden });
  assert.deepEqual({ status, stderr }, { status: 0, stderr: '' });
  assert.deepEqual(namesIn(stdout), ['a']);
  assert.deepEqual(
    fs.readdirSync(data).filter((name) => name.startsWith('certificate-vault-')),
    [],
  );
});

test('the executable fails with the reason for each directory if SQLite cannot be loaded from any', () => {
  const env = { TMPDIR: forbidden, XDG_RUNTIME_DIR: absent };
  const args = ['-c', 'ulimit -f 1; exec "$0" "$@"', program, ...list];
  const { status, stdout, stderr } = spawnSync('sh', args, { ...user, env, encoding: 'utf8' });
  assert.deepEqual({ status, stdout }, { status: 1, stdout: '' });
  assert.match(stderr, /^vault: cannot load SQLite from any directory: /);
  assert.ok(stderr.includes(`${forbidden} (permission denied), `), stderr);
  assert.ok(stderr.includes(`${absent} (no such file or directory), `), stderr);
  assert.match(stderr, /\/var\/tmp \(file too large/);
  assert.match(stderr, /\bTMPDIR\b.*\bnoexec\b/);
  assert.doesNotMatch(stderr, /\n\s+at /);
});

test('neither NODE_OPTIONS nor SIGUSR1 opens a debugger on the executable', async (t) => {
  assertLists({ NODE_OPTIONS: '--inspect-brk=127.0.0.1:0 --no-such-option', TMPDIR: temporary });
  const args = ['serve', '--data-dir', data, '--listen', '127.0.0.1:0'];
  const server = spawn(program, args, { ...user, env: {}, stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => server.kill('SIGKILL'));
  const ended = once(server, 'exit');
  await once(server.stdout, 'data');
  const status = fs.readFileSync(`/proc/${server.pid}/status`, 'utf8');
  const caught = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1]}`);
  assert.equal(caught & (1n << BigInt(constants.signals.SIGUSR1 - 1)), 0n);
  server.kill('SIGUSR1');
  server.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null]);
});

/** Lists where new file systems, which refuse to run what they hold, lie over these directories. */
function listWithNoexec(directories: string[], env: NodeJS.ProcessEnv) {
  const mounts = directories.map((path) => `mount -t tmpfs -o noexec,mode=1777 tmpfs '${path}' && `);
  const script = `${mounts.join('')}exec "$0" "$@"`;
  const args = ['--mount', '--map-root-user', 'sh', '-c', script, program, ...list];
  return spawnSync('unshare', args, { ...user, env: { PATH: process.env.PATH, ...env }, encoding: 'utf8' });
}

function mayMount(): { readonly skip?: string } {
  const args = ['--mount', '--map-root-user', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()];
  return spawnSync('unshare', args, user).status === 0 ? {} : { skip: 'this user may not mount' };
}
