/**
 * `vault master-key …` as people use it: looking, rotating under a running server, a passphrase on the file,
 * credentials.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { commandLine } from '../../../harness/processes/command-line.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';

type Status = {
  rotation: string;
  source: string;
  keys: {
    id: string;
    state: string;
    since: string;
    files: { path: string; sealed: boolean }[];
    blobs: object;
  }[];
};

async function withCertificate(t: TestContext) {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name=web', '--domain=a.test');
  const status = () => line.json<Status>('master-key', 'status');
  const secretFile = (words: string) => {
    const path = line.file(`${words}\n`);
    chmodSync(path, 0o600);
    return path;
  };
  return { ...line, dir: dirname(line.data), status, secretFile };
}

const passphrase = 'several words in a row';

test('status prints the keys, what they encrypt and their files, as JSON and as a table', async (t) => {
  const { data, status, done } = await withCertificate(t);
  const before = await status();
  assert.deepEqual([before.rotation, before.source, before.keys.length], ['none', 'file', 1]);
  const [key] = before.keys;
  assert.deepEqual(key?.blobs, {
    'certificate_versions.sealed_private_key': 1,
    'ca_certificates.sealed_private_key': 2,
  });
  assert.deepEqual(key?.files, [{ path: join(data, 'master.key'), sealed: false }]);
  const table = (await done('master-key', 'status')).stdout;
  assert.match(
    table,
    new RegExp(`^Key file +${data}/master\\.key\nRotation +none\n\nKEY +STATE +SINCE +SEALS +FILE\n`),
  );
  assert.match(
    table,
    new RegExp(`^${key?.id} +current +\\S+Z +1 certificate_versions, 2 ca_certificates +/`, 'm'),
  );
});

test('status reports a missing key file as missing', async (t) => {
  const { data, done, refused } = await withCertificate(t);
  renameSync(join(data, 'master.key'), join(data, '..', 'away'));
  await refused(['certificate', 'list'], /the master key .*master\.key is missing/);
  assert.match(
    (await done('master-key', 'status')).stdout,
    /current +\S+Z +1 certificate_versions.* +missing\n/,
  );
});

test('a running server serves the same bytes and ETags during key rotations and needs no restart', async (t) => {
  const { data, done, status } = await withCertificate(t);
  const scopes = ['--scope=private_keys:read', '--scope=certificates:read'];
  const key = (await done('api-key', 'create', '--name=k', ...scopes, '--certificate=*')).stdout.trim();
  const server = await serve(t, data);
  const download = async (name = 'web') => {
    const url = `${server.url}/api/v1/certificates/${name}/private.key`;
    const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
    return `${response.status} ${response.headers.get('etag')} ${await response.text()}`;
  };
  const before = await download();
  assert.match(before, /^200 "\S+" -----BEGIN PRIVATE KEY-----/);
  let isRotating = true;
  const seen = new Set<string>();
  const downloads = (async () => {
    while (isRotating) seen.add(await download());
  })();
  for (let round = 0; round < 3; round += 1) await done('master-key', 'rotate');
  isRotating = false;
  await downloads;
  assert.deepEqual([...seen], [before]);
  // What was sealed before the server knew of the key, and by the server itself.
  await done('certificate', 'create', '--name=later', '--domain=b.test');
  assert.match(await download('later'), /^200 /);
  assert.equal((await fetch(`${server.url}/api/v1/ready`)).status, 200);
  const { keys } = await status();
  assert.deepEqual(keys.map(({ state }) => state).sort(), ['current', 'retired', 'retired', 'retired']);
  assert.equal((await server.end()).code, 0);
});

test('rotate, unseal and remove are rejected when the master key comes from standard input', async (t) => {
  const { data } = await withCertificate(t);
  for (const args of [['rotate'], ['unseal'], ['remove', '--id=0123456789abcdef']]) {
    const { code, stderr } = await vault(
      ['master-key', ...args, '--data-dir', data, '--master-key-file', '-'],
      { input: readFileSync(join(data, 'master.key')) },
    );
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^vault: this command needs a key file, but the master key comes from standard input\n/,
    );
  }
});

test('concurrent key rotations all succeed, and each key keeps its file', async (t) => {
  const { data, run, done, status } = await withCertificate(t);
  const outcomes = await Promise.all([0, 1, 2].map(() => run('master-key', 'rotate')));
  for (const { code, stderr } of outcomes) assert.equal(code, 0, stderr);
  const { keys, rotation } = await status();
  assert.equal(rotation, 'none');
  const current = keys.filter(({ state }) => state === 'current');
  assert.deepEqual(
    current.map(({ files }) => files.map(({ path }) => path)),
    [[join(data, 'master.key')]],
  );
  for (const { id, state, files } of keys) assert(files.length > 0, `${id} ${state}`);
  await done('backup', join(dirname(data), 'x.backup'));
});

test('a backup from before a key rotation can be restored until its master key is removed', async (t) => {
  const { dir, data, done, refused, status } = await withCertificate(t);
  const backup = join(dir, 'before.backup');
  await done('backup', backup);
  const [old] = (await status()).keys;
  await done('master-key', 'rotate');
  const check = await done('restore', backup, '--check');
  assert.match(
    check.stderr,
    new RegExp(`The master key \\(${old?.id}\\) is in ${data}/master\\.key\\.${old?.id}\\.`),
  );
  await done('restore', backup, '--replace');
  await done('certificate', 'list');
  const restored = await status();
  const main = restored.keys.find(({ state }) => state === 'current');
  assert.deepEqual(
    [main?.id, main?.files[0]?.path],
    [old?.id, join(data, 'master.key')],
    'the key file is the right one',
  );
  await done('master-key', 'rotate');
  const removed = await done('master-key', 'remove', '--yes', '--id', old?.id ?? '');
  assert.match(
    removed.stderr,
    /^Removed: .*\nTo restore backups that need this key, you need a copy of it\.\n$/,
  );
  await refused(
    ['restore', backup, '--check'],
    new RegExp(`needs master key ${old?.id}, but .* holds \\w{16}`),
  );
});

test('a sealed key file opens only with its passphrase, from a file or a credential', async (t) => {
  const { data, dir, done, refused, secretFile, status } = await withCertificate(t);
  const right = secretFile(passphrase);
  const bytes = readFileSync(join(data, 'master.key'));
  await refused(['master-key', 'seal', '--passphrase-file', secretFile('short')], /passphrase refused/);
  assert.deepEqual(readFileSync(join(data, 'master.key')), bytes);
  const sealed = await done('master-key', 'seal', '--passphrase-file', right);
  assert.match(sealed.stderr, /Opening the vault now needs the passphrase/);
  assert.equal(readFileSync(join(data, 'master.key')).includes(bytes), false);
  await refused(
    ['certificate', 'list'],
    /^vault: the master key in .* is sealed, and there is no terminal .*\n {2}Pass a file .*--master-key-passphrase-file/,
  );
  const wrong = ['--master-key-passphrase-file', secretFile('several words in a raw')];
  await refused(['certificate', 'list', ...wrong], /^vault: wrong passphrase for the master key in /);
  const open = ['--master-key-passphrase-file', right];
  await done('certificate', 'list', ...open);
  const asCredential = join(dir, 'credentials');
  mkdirSync(asCredential, { mode: 0o700 });
  writeFileSync(join(asCredential, 'master-key-passphrase'), `${passphrase}\n`, { mode: 0o400 });
  const listed = await vault(['certificate', 'list', '--data-dir', data], {
    environment: { CREDENTIALS_DIRECTORY: asCredential },
  });
  assert.equal(listed.code, 0, listed.stderr);
  // The next key is sealed under the same passphrase, and a server that was started with it finds it.
  const server = await serve(t, data, { args: open });
  await done('master-key', 'rotate', ...open);
  assert.equal((await fetch(`${server.url}/api/v1/ready`)).status, 200);
  await server.end();
  assert.deepEqual(
    (await status()).keys.map(({ files }) => files.map(({ sealed }) => sealed)),
    [[true], [true]],
  );
  await done('master-key', 'unseal', ...open);
  await done('certificate', 'list');
});

test('rotate is rejected until the running server has the next key among its credentials', async (t) => {
  const { data, dir, status } = await withCertificate(t);
  const keys = join(dir, 'credentials');
  mkdirSync(keys, { mode: 0o700 });
  renameSync(join(data, 'master.key'), join(keys, 'master.key'));
  const environment = { CREDENTIALS_DIRECTORY: keys };
  const rotate = (...args: string[]) =>
    vault(['master-key', 'rotate', '--data-dir', data, ...args], { environment });
  const without = await serve(t, data, { environment });
  const next = join(keys, 'master.key.next');
  const refused = async (pattern: RegExp) => {
    const { code, stderr } = await rotate();
    assert.equal(code, 1, stderr);
    assert.match(stderr, pattern);
    assert.match(stderr, /LoadCredential=master\.key\.next:FILE, restart it, and run this again/);
    assert.equal((await statusOf()).keys[0]?.state, 'current', 'the rotation has not begun');
  };
  const statusOf = async () => {
    const shown = await vault(['master-key', 'status', '--json', '--data-dir', data], { environment });
    return JSON.parse(shown.stdout) as Awaited<ReturnType<typeof status>>;
  };
  await refused(/^vault: the running server does not have the next master key\n/);
  assert.equal(existsSync(next), false, 'nothing was written');
  writeFileSync(next, Buffer.alloc(32, 5), { mode: 0o600 });
  await refused(/^vault: the running server does not have the next master key \([0-9a-f]{16}\)\n/);
  await without.end();
  const server = await serve(t, data, { environment });
  const rotated = await rotate();
  assert.equal(rotated.code, 0, rotated.stderr);
  assert.equal((await fetch(`${server.url}/api/v1/ready`)).status, 200);
  await server.end();
});

test('rotate --force succeeds after a server without the next key was killed', async (t) => {
  const { data, dir } = await withCertificate(t);
  const keys = join(dir, 'credentials');
  mkdirSync(keys, { mode: 0o700 });
  renameSync(join(data, 'master.key'), join(keys, 'master.key'));
  const environment = { CREDENTIALS_DIRECTORY: keys };
  const server = await serve(t, data, { environment });
  await server.end('SIGKILL');
  const rotate = (...args: string[]) =>
    vault(['master-key', 'rotate', '--data-dir', data, ...args], { environment });
  assert.equal((await rotate()).code, 1);
  const forced = await rotate('--force');
  assert.equal(forced.code, 0, forced.stderr);
});

test('the passphrase is changed by sealing again', async (t) => {
  const { done, refused, secretFile } = await withCertificate(t);
  const [first, second] = [secretFile(passphrase), secretFile('other words in another row')];
  await done('master-key', 'seal', '--passphrase-file', first);
  await done('master-key', 'seal', '--passphrase-file', second, '--master-key-passphrase-file', first);
  await refused(
    ['certificate', 'list', '--master-key-passphrase-file', first],
    /wrong passphrase for the master key/,
  );
  await done('certificate', 'list', '--master-key-passphrase-file', second);
});

test('a passphrase file that other users can read is rejected', async (t) => {
  const { done, refused, file, secretFile } = await withCertificate(t);
  await done('master-key', 'seal', '--passphrase-file', secretFile(passphrase));
  const exposed = file(passphrase);
  chmodSync(exposed, 0o644);
  await refused(
    ['certificate', 'list', '--master-key-passphrase-file', exposed],
    /is readable by other users/,
  );
});

test('a new vault seals its key file if a passphrase is configured', async (t) => {
  const { dir, secretFile } = await withCertificate(t);
  const data = join(dir, 'new');
  const right = secretFile(passphrase);
  const args = ['--data-dir', data, '--master-key-passphrase-file', right];
  const made = await vault(['certificate', 'create', '--name=web', '--domain=a.test', ...args]);
  assert.equal(made.code, 0, made.stderr);
  assert.match(readFileSync(join(data, 'master.key'), 'utf8'), /^\{\n "certificate_vault_master_key": 1,/);
});

test('a read-only key file is rotated in two steps with master.key.next', async (t) => {
  if (process.getuid?.() !== 0)
    return t.skip('needs root, to take a directory away from the user of the vault');
  const { data, dir } = await withCertificate(t);
  const nobody = { uid: 65534, gid: 65534 };
  const keys = join(dir, 'credentials');
  mkdirSync(keys, { mode: 0o755 });
  chmodSync(dir, 0o755);
  renameSync(join(data, 'master.key'), join(keys, 'master.key'));
  chmodSync(join(keys, 'master.key'), 0o440);
  chownSync(join(keys, 'master.key'), 0, nobody.gid);
  for (const name of ['', ...readdirSync(data)]) chownSync(join(data, name), nobody.uid, nobody.gid);
  const launch = { ...nobody, environment: { CREDENTIALS_DIRECTORY: keys } };
  const run = (...args: string[]) => vault([...args, '--data-dir', data], launch);
  const refusedFirst = await run('master-key', 'rotate');
  assert.equal(refusedFirst.code, 1);
  assert.match(
    refusedFirst.stderr,
    /^vault: cannot write the next master key beside the current one: permission denied/,
  );
  assert.match(refusedFirst.stderr, /store it as .*master\.key\.next for the server and this command/);
  const next = join(keys, 'master.key.next');
  writeFileSync(next, Buffer.alloc(32, 5), { mode: 0o440 });
  chownSync(next, 0, nobody.gid);
  const rotated = await run('master-key', 'rotate');
  assert.equal(rotated.code, 0, rotated.stderr);
  assert.match(
    rotated.stderr,
    /master\.key still holds the old key, because this command cannot change it\.\nPut key/,
  );
  assert.equal((await run('certificate', 'list')).code, 0, 'it works before that');
  renameSync(next, join(keys, 'master.key'));
  const listed = await run('certificate', 'list');
  assert.equal(listed.code, 0, listed.stderr);
  assert.equal(existsSync(next), false);
  const shown = await run('master-key', 'status', '--json');
  const { source, keys: known } = JSON.parse(shown.stdout) as Status;
  assert.equal(source, 'credential');
  assert.deepEqual(
    known.map(({ state, files }) => [state, ...files.map(({ path }) => path)]),
    [['retired'], ['current', join(keys, 'master.key')]],
  );
});
