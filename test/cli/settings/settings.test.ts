/**
 * Where settings come from (a flag beats the environment, which beats the file, which beats the default), and where
 * the defaults lie for whom.
 */
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { isLoopback, readSettings, type Settings } from '../../../src/cli/settings/settings.ts';
import { vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

/** Four values of a setting, in the order in which they win: flag, environment, file, default. */
type Case = {
  readonly name:
    | 'listen'
    | 'public-url'
    | 'trusted-proxies'
    | 'log-level'
    | 'no-create'
    | 'insecure-http'
    | 'master-key-file';
  readonly written: readonly [string | boolean, string, string];
  readonly read: (settings: Settings, dir: string) => unknown;
  readonly expected: readonly [unknown, unknown, unknown, unknown];
};

const cases: readonly Case[] = [
  {
    name: 'listen',
    written: ['127.0.0.1:1', '[::1]:2', ':3'],
    read: ({ listen }) => `${listen.host} ${listen.port}`,
    expected: ['127.0.0.1 1', '::1 2', '0.0.0.0 3', '127.0.0.1 8080'],
  },
  {
    name: 'public-url',
    written: ['https://flag.test/', 'https://environment.test:8443', 'http://file.test'],
    read: ({ publicUrl }) => publicUrl,
    expected: ['https://flag.test', 'https://environment.test:8443', 'http://file.test', undefined],
  },
  {
    name: 'trusted-proxies',
    written: ['127.0.0.1, ::1', '10.0.0.0/8', '2001:DB8::/32'],
    read: (settings) => settings.clients.trustedProxies.map(({ text }) => text).join(' '),
    expected: ['127.0.0.1 ::1', '10.0.0.0/8', '2001:db8::/32', ''],
  },
  {
    name: 'log-level',
    written: ['error', 'warn', 'debug'],
    read: ({ logLevel }) => logLevel,
    expected: ['error', 'warn', 'debug', 'info'],
  },
  {
    name: 'no-create',
    written: [true, 'no', 'true'],
    read: ({ noCreate }) => noCreate,
    expected: [true, false, true, false],
  },
  {
    name: 'insecure-http',
    written: [true, 'no', 'true'],
    read: ({ insecureHttp }) => insecureHttp,
    expected: [true, false, true, false],
  },
  {
    name: 'master-key-file',
    written: ['/flag/key', '/environment/key', '/file/key'],
    read: ({ masterKeyFile }, dir) => masterKeyFile.replace(dir, 'DIR'),
    expected: ['/flag/key', '/environment/key', '/file/key', 'DIR/master.key'],
  },
];

for (const { name, written, read, expected } of cases) {
  test(`${name}: the flag beats the environment, which beats the file, which beats the default`, async (t) => {
    const dir = tempDir(t);
    const [flag, variable, line] = written;
    const flags = { 'data-dir': dir, [name]: flag };
    const environment = { [`VAULT_${name.replaceAll('-', '_').toUpperCase()}`]: variable };
    const without = { 'data-dir': dir };
    assert.equal(read(await readSettings(without, {}), dir), expected[3]);
    writeFileSync(join(dir, 'vault.yaml'), `${name.replaceAll('-', '_')}: "${line}"\n`);
    assert.equal(read(await readSettings(without, {}), dir), expected[2]);
    assert.equal(read(await readSettings(without, environment), dir), expected[1]);
    assert.equal(read(await readSettings(flags, environment), dir), expected[0]);
  });
}

test('config: the flag beats the environment, which beats vault.yaml in the data directory', async (t) => {
  const dir = tempDir(t);
  const file = (name: string, level: string) => {
    writeFileSync(join(dir, name), `log_level: ${level}\n`);
    return join(dir, name);
  };
  const [byFlag, byVariable] = [file('flag.yaml', 'error'), file('variable.yaml', 'warn')];
  const level = async (flags: object, environment: Record<string, string>) =>
    (await readSettings({ 'data-dir': dir, ...flags }, environment)).logLevel;
  assert.equal(await level({}, {}), 'info');
  file('vault.yaml', 'debug');
  assert.equal(await level({}, {}), 'debug');
  assert.equal(await level({}, { VAULT_CONFIG: byVariable }), 'warn');
  assert.equal(await level({ config: byFlag }, { VAULT_CONFIG: byVariable }), 'error');
});

test('data-dir: the flag beats the environment, which beats the file, which beats the default', async (t) => {
  const dir = tempDir(t);
  const config = join(dir, 'somewhere.yaml');
  writeFileSync(config, 'data_dir: /from/file\n');
  const environment = { VAULT_DATA_DIR: '/from/environment', STATE_DIRECTORY: '/from/systemd:/second' };
  const state = { STATE_DIRECTORY: environment.STATE_DIRECTORY };
  const dataDir = async (...from: Parameters<typeof readSettings>) => (await readSettings(...from)).dataDir;
  assert.equal(await dataDir({ 'data-dir': '/from/flag', config }, environment), '/from/flag');
  assert.equal(await dataDir({ config }, environment), '/from/environment');
  assert.equal(await dataDir({ config }, state), '/from/file');
  assert.equal(await dataDir({}, state), '/from/systemd');
});

test('an empty environment variable counts as unset', async (t) => {
  const dir = tempDir(t);
  const environment = { VAULT_DATA_DIR: '', VAULT_CONFIG: '', VAULT_LISTEN: '', VAULT_INSECURE_HTTP: '' };
  const settings = await readSettings({}, { ...environment, STATE_DIRECTORY: dir });
  assert.deepEqual(settings, await readSettings({ 'data-dir': dir }, {}));
});

test('a relative data directory is resolved against the working directory', async () => {
  const { dataDir, masterKeyFile } = await readSettings({ 'data-dir': 'some/where' }, {});
  assert.equal(dataDir, join(process.cwd(), 'some/where'));
  assert.equal(masterKeyFile, join(process.cwd(), 'some/where/master.key'));
});

test('the master key file defaults to the one in $CREDENTIALS_DIRECTORY if it exists', async (t) => {
  const dir = tempDir(t);
  const environment = { CREDENTIALS_DIRECTORY: dir };
  const keyFile = async () => (await readSettings({ 'data-dir': '/data' }, environment)).masterKeyFile;
  assert.equal(await keyFile(), '/data/master.key');
  writeFileSync(join(dir, 'master.key'), 'x');
  assert.equal(await keyFile(), join(dir, 'master.key'));
});

const isRoot = process.getuid?.() === 0;
const nobody = isRoot ? { uid: 65_534, gid: 65_534 } : {};

test('root keeps its vault in /var/lib/vault', isRoot ? {} : { skip: 'this user is not root' }, async () => {
  assert.equal((await readSettings({}, { HOME: '/root', XDG_DATA_HOME: '/xdg' })).dataDir, '/var/lib/vault');
});

test('other users keep their vault in $STATE_DIRECTORY, else in $XDG_DATA_HOME, else under their home', async (t) => {
  const dir = tempDir(t);
  chmodSync(dir, 0o755);
  const environments = [
    [{ STATE_DIRECTORY: undefined, XDG_DATA_HOME: join(dir, 'xdg'), HOME: dir }, 'xdg/vault'],
    [{ STATE_DIRECTORY: undefined, XDG_DATA_HOME: undefined, HOME: dir }, '.local/share/vault'],
    [{ STATE_DIRECTORY: join(dir, 'state'), XDG_DATA_HOME: join(dir, 'xdg'), HOME: dir }, 'state'],
  ] as const;
  for (const [environment, expected] of environments) {
    const { code, stdout, stderr } = await vault(['api-key', 'list'], { ...nobody, environment });
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
    assert.ok(stderr.startsWith(`vault: no vault in ${join(dir, expected)}\n`), stderr);
  }
});

test('loopback is 127.0.0.0/8, ::1 and localhost', () => {
  for (const host of ['127.0.0.1', '127.9.9.9', '::1', 'localhost'])
    assert.equal(isLoopback(host), true, host);
  for (const host of [
    '0.0.0.0',
    '::',
    '10.0.0.1',
    '127.0.0.1.example.com',
    '::ffff:127.0.0.1',
    'localhost.example.com',
  ])
    assert.equal(isLoopback(host), false, host);
});
