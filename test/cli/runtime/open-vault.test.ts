/** Vaults that cannot be used, as an operator meets them: each is refused with a sentence, and no file is changed. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { type Launch, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const root = fs.mkdtempSync(join(tmpdir(), 'vault-open-'));
after(() => fs.rmSync(root, { recursive: true }));
const original = join(root, 'original');
const isRoot = process.getuid?.() === 0;
const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};

before(async () => {
  fs.chmodSync(root, 0o755);
  const args = ['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', original];
  assert.equal((await vault(args)).code, 0);
});

/** A copy of a vault with one certificate, for a test to damage. */
function copy(name: string): string {
  const path = join(root, name);
  fs.cpSync(original, path, { recursive: true });
  return path;
}

/** Names, modes and contents of the files, apart from SQLite's -wal and -shm, which come and go. */
function snapshot(dir: string): Record<string, string> {
  const names = fs.readdirSync(dir, { recursive: true, encoding: 'utf8' }).sort();
  const kept = names.filter((name) => !/-(wal|shm)$/.test(name) && fs.statSync(join(dir, name)).isFile());
  return Object.fromEntries(
    kept.map((name) => {
      const content = createHash('sha256')
        .update(fs.readFileSync(join(dir, name)))
        .digest('hex');
      return [name, `${fs.statSync(join(dir, name)).mode.toString(8)} ${content}`];
    }),
  );
}

const serving = ['serve', '--listen', '127.0.0.1:0'];
const writing = ['api-key', 'create', '--name=x', '--scope=certificates:read', '--certificate=*'];

type Attempt = {
  readonly by?: readonly string[][];
  readonly more?: readonly string[];
  readonly launch?: Launch;
};

/** Each command refuses the vault with exactly this, and leaves everything as it was. */
async function assertRefused(
  dir: string,
  stderr: string | RegExp,
  { by = [serving], more = [], launch = {} }: Attempt = {},
): Promise<void> {
  const place = fs.statSync(dir).isDirectory() ? dir : join(dir, '..');
  const files = snapshot(place);
  for (const command of by) {
    const outcome = await vault([...command, '--data-dir', dir, ...more], launch);
    assert.deepEqual([outcome.code, outcome.stdout], [1, ''], outcome.stderr);
    if (typeof stderr === 'string') assert.equal(outcome.stderr, stderr);
    else assert.match(outcome.stderr, stderr);
    assert.doesNotMatch(outcome.stderr, /\n\s+at /);
  }
  assert.deepEqual(snapshot(place), files);
}

test('the master key of another vault is rejected', async () => {
  const dir = copy('wrong-key');
  const key = join(dir, 'master.key');
  fs.writeFileSync(key, Buffer.alloc(32, 7));
  await assertRefused(
    dir,
    `vault: ${key} is not the master key of the vault in ${dir}\n` +
      '  Restore the right key from your copy, or use --master-key-file to name it. Nothing was changed.\n',
    { by: [serving, writing] },
  );
});

test('a master key that is missing beside an existing vault is not created again', async () => {
  const dir = copy('missing-key');
  const elsewhere = join(root, 'keys', 'kept.key');
  const refusal = (path: string) =>
    `vault: the master key ${path} is missing; no private key can be opened without it\n` +
    '  Restore the file from your copy, or use --master-key-file to name it. Nothing was changed.\n';
  await assertRefused(dir, refusal(elsewhere), { more: ['--master-key-file', elsewhere] });
  assert.equal(fs.existsSync(join(root, 'keys')), false);
  fs.mkdirSync(join(root, 'keys'));
  fs.renameSync(join(dir, 'master.key'), elsewhere);
  await assertRefused(dir, refusal(join(dir, 'master.key')), { by: [serving, writing] });
  const { code } = await vault(['certificate', 'list', '--data-dir', dir, '--master-key-file', elsewhere]);
  assert.equal(code, 0, 'it is the key that was missing');
});

test('a master key of the wrong size and one that is a directory are rejected', async () => {
  const dir = copy('odd-key');
  const key = join(dir, 'master.key');
  fs.writeFileSync(key, Buffer.alloc(31));
  const hint = '  Restore the original file, or set --master-key-file to the right one.\n';
  await assertRefused(
    dir,
    `vault: ${key} is not a master key: it has 31 bytes instead of 32, and is not sealed\n${hint}`,
  );
  await assertRefused(dir, /^vault: cannot read the master key file \S+: is a directory/, {
    more: ['--master-key-file', root],
  });
});

test('a data directory that is a file is rejected', async () => {
  const file = join(root, 'file');
  fs.writeFileSync(file, 'precious');
  await assertRefused(
    file,
    /^vault: cannot read the vault in \S+file: not a directory\n {2}Run the command as the user that owns/,
  );
  assert.equal(fs.readFileSync(file, 'utf8'), 'precious');
});

test('a data directory of another user is rejected, whether it is readable or not', rootOnly(), async () => {
  const dir = copy('foreign');
  const as = { launch: nobody };
  for (const mode of [0o700, 0o755]) {
    fs.chmodSync(dir, mode);
    await assertRefused(dir, /^vault: the data directory \S+ belongs to root, not to nobody\n/, as);
  }
  const within = join(dir, 'new');
  const { code, stderr } = await vault(['serve', '--data-dir', within], nobody);
  assert.equal(code, 1);
  assert.match(
    stderr,
    /^vault: cannot create directory \S+: permission denied\n {2}Choose a directory that this user can write/,
  );
});

test('a database written by a newer vault is rejected', async () => {
  const dir = copy('newer');
  const database = new BetterSqlite3(join(dir, 'vault.db'));
  database
    .prepare("insert into kysely_migration (name, timestamp) values ('9999-future', '2099-01-01')")
    .run();
  database.close();
  await assertRefused(
    dir,
    `vault: ${join(dir, 'vault.db')} was written by a newer vault (its schema has 9999-future)\n` +
      '  Start the newer vault again, or restore the copy from before the upgrade.\n',
  );
});

test('a database of another program is rejected', async () => {
  const dir = copy('other');
  fs.rmSync(join(dir, 'vault.db'));
  new BetterSqlite3(join(dir, 'vault.db')).exec('create table notes (note text)').close();
  fs.chmodSync(join(dir, 'vault.db'), 0o600);
  await assertRefused(
    dir,
    /^vault: \S+ is a database of another program\n {2}Set --data-dir to another directory/,
  );
});

test('a file that is not a database and a database with a damaged header are rejected', async () => {
  const refusal =
    /^vault: the database is damaged, or the file is not a database \(.*\)\n {2}Nothing was changed\. Keep a copy/;
  const text = copy('text');
  fs.writeFileSync(join(text, 'vault.db'), 'this was never a database\n'.repeat(1000));
  await assertRefused(text, refusal);
  const header = copy('header');
  overwrite(join(header, 'vault.db'), 0, 100);
  await assertRefused(header, refusal);
});

test('a server does not start on a database with damaged pages', async () => {
  const pages = fs.statSync(join(original, 'vault.db')).size / 4096;
  // From the third page on: what lies there (a table, an index) decides who notices first, and in which words.
  for (const page of [2, pages - 1]) {
    const dir = copy(`page-${page}`);
    overwrite(join(dir, 'vault.db'), page * 4096, 4096);
    const files = snapshot(dir);
    const { code, stdout, stderr } = await vault(['serve', '--listen=127.0.0.1:0', '--data-dir', dir]);
    assert.deepEqual([code, stdout], [1, ''], stderr);
    assert.match(
      stderr,
      /^vault: the database .*(is damaged).*\n {2}Nothing was changed\. Keep a copy of the file/s,
    );
    assert.deepEqual(snapshot(dir), files, `page ${page}`);
  }
});

test('several commands that start concurrently on an empty directory all succeed with one vault', async (t) => {
  const dir = join(tempDir(t), 'data');
  const create = ['api-key', 'create', '--scope=certificates:read', '--certificate=*', '--data-dir', dir];
  const outcomes = await Promise.all([1, 2, 3, 4].map((n) => vault([...create, `--name=${n}`])));
  for (const { code, stderr } of outcomes) assert.equal(code, 0, stderr);
  const { stdout } = await vault(['api-key', 'list', '--data-dir', dir]);
  assert.deepEqual((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name).sort(), [
    '1',
    '2',
    '3',
    '4',
  ]);
  assert.deepEqual(Object.keys(snapshot(dir)), ['master.key', 'vault.db']);
});

function overwrite(path: string, position: number, length: number): void {
  const file = fs.openSync(path, 'r+');
  fs.writeSync(file, Buffer.alloc(length, 0xa5), 0, length, position);
  fs.closeSync(file);
}

function rootOnly(): { skip?: string } {
  return isRoot ? {} : { skip: 'only root can be another user' };
}
