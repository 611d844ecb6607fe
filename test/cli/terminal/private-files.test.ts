/**
 * Files that others could read or change, and vaults of other users: each is refused by every command, and what the
 * refusal says to do is done and helps. Files that the vault makes are its own from the beginning.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { allCommands, type KnownCommand } from '../../harness/command-tree.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import {
  enterable,
  fromExecutable,
  type Launch,
  serve,
  vault,
} from '../../harness/processes/vault-process.ts';

const root = fs.mkdtempSync(join(tmpdir(), 'vault-private-'));
after(() => fs.rmSync(root, { recursive: true }));
const original = join(root, 'original');
const isRoot = process.getuid?.() === 0;
const me = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
const rootOnly = isRoot ? {} : { skip: 'only root can give files to another user' };
const nobody = { uid: 65_534, gid: 65_534 };

before(async () => {
  fs.chmodSync(root, 0o755);
  const args = ['certificate', 'create', '--name=web', '--domain=a.test', '--data-dir', original];
  assert.equal((await vault(args)).code, 0);
  fs.writeFileSync(join(root, 'desired.yaml'), 'version: 1\n');
  for (const name of ['vault.db-wal', 'vault.db-shm']) fs.writeFileSync(join(original, name), '');
  fs.chmodSync(join(original, 'vault.db-wal'), 0o600);
  fs.chmodSync(join(original, 'vault.db-shm'), 0o600);
});

/** A copy of a vault with one certificate. */
function copy(name: string): string {
  const path = join(root, name);
  fs.cpSync(original, path, { recursive: true });
  for (const file of fs.readdirSync(path)) fs.chmodSync(join(path, file), 0o600);
  fs.chmodSync(path, 0o700);
  return path;
}

const list = ['certificate', 'list', '--json'];

/** The command is refused with exactly this; the mending that it names is done by a shell, and then it is not. */
async function refusedUntilFixed(
  dir: string,
  what: string,
  fix: string,
  { args = [], launch = {} }: { readonly args?: readonly string[]; readonly launch?: Launch } = {},
): Promise<void> {
  const run = () => vault([...list, '--data-dir', dir, ...args], launch);
  const { code, stdout, stderr } = await run();
  assert.deepEqual([code, stdout, stderr], [1, '', `vault: ${what}\n  Fix: ${fix}\n`]);
  execFileSync('sh', ['-c', fix]);
  const fixed = await run();
  assert.equal(fixed.code, 0, fixed.stderr);
  assert.match(fixed.stdout, /"name": ?"web"/);
}

suite('files that other users can read or write', () => {
  const modes: readonly (readonly [mode: number, access: string])[] = [
    [0o755, 'readable'],
    [0o710, 'readable'],
    [0o770, 'writable'],
    [0o1702, 'writable'],
  ];
  for (const [mode, access] of modes) {
    const shown = mode.toString(8).padStart(4, '0');
    test(`a data directory of mode ${shown} is rejected with the command that fixes it`, async () => {
      const dir = copy(`dir-${shown}`);
      fs.chmodSync(dir, mode);
      await refusedUntilFixed(
        dir,
        `the data directory ${dir} is ${access} by other users (mode ${shown})`,
        `chmod 700 ${dir}`,
      );
    });
  }

  for (const name of [
    'vault.db',
    'vault.db-wal',
    'vault.db-shm',
    'vault.db.before-0002-acme',
    'master.key',
  ]) {
    test(`${name} that other users can read or write is rejected with the command that fixes it`, async () => {
      for (const [mode, access] of [
        [0o640, 'readable'],
        [0o602, 'writable'],
      ] as const) {
        const dir = copy(`file-${name}-${mode.toString(8)}`);
        const file = join(dir, name);
        if (!fs.existsSync(file)) fs.writeFileSync(file, '');
        fs.chmodSync(file, mode);
        const kind = name === 'master.key' ? 'the key file' : 'the database file';
        const shown = mode.toString(8).padStart(4, '0');
        await refusedUntilFixed(
          dir,
          `${kind} ${file} is ${access} by other users (mode ${shown})`,
          `chmod 600 ${file}`,
        );
      }
    });
  }

  test('all violations are reported together and fixed by one command', async () => {
    const dir = copy("it's all wrong");
    const key = join(root, 'elsewhere.key');
    fs.renameSync(join(dir, 'master.key'), key);
    fs.chmodSync(dir, 0o750);
    fs.chmodSync(join(dir, 'vault.db'), 0o664);
    fs.chmodSync(key, 0o644);
    const quoted = (path: string) => `'${path.replace("'", "'\\''")}'`;
    await refusedUntilFixed(
      dir,
      `the data directory ${dir} is readable by other users (mode 0750), and ` +
        `the database file ${join(dir, 'vault.db')} is writable by other users (mode 0664), and ` +
        `the key file ${key} is readable by other users (mode 0644)`,
      `chmod 700 ${quoted(dir)} && chmod 600 ${quoted(join(dir, 'vault.db'))} && chmod 600 ${key}`,
      { args: ['--master-key-file', key] },
    );
  });

  test('a symbolic link is checked by the permissions of its target', async () => {
    const dir = copy('target');
    const link = join(root, 'link');
    fs.symlinkSync(dir, link);
    assert.equal(
      (await vault([...list, '--data-dir', link])).code,
      0,
      'a link to a private directory is fine',
    );
    fs.chmodSync(dir, 0o755);
    const { code, stderr } = await vault([...list, '--data-dir', link]);
    assert.equal(code, 1);
    assert.match(stderr, /is readable by other users \(mode 0755\)/);
    fs.chmodSync(dir, 0o700);
    // The write-ahead log would be made where the database really is.
    const shared = join(root, 'shared');
    fs.mkdirSync(shared, { mode: 0o755 });
    fs.renameSync(join(dir, 'vault.db'), join(shared, 'vault.db'));
    fs.symlinkSync(join(shared, 'vault.db'), join(dir, 'vault.db'));
    await refusedUntilFixed(
      dir,
      `the data directory ${shared} is readable by other users (mode 0755)`,
      `chmod 700 ${shared}`,
    );
    fs.symlinkSync(join(dir, 'master.key'), join(root, 'key-link'));
    fs.chmodSync(join(dir, 'master.key'), 0o644);
    const linked = await vault([...list, '--data-dir', dir, '--master-key-file', join(root, 'key-link')]);
    assert.match(linked.stderr, /key-link is readable by other users \(mode 0644\)/);
  });

  test('a settings file that others can read is accepted, and one that others can write is rejected', async () => {
    const dir = copy('settings');
    const file = join(dir, 'vault.yaml');
    fs.writeFileSync(file, 'listen: 127.0.0.1:0\n');
    fs.chmodSync(file, 0o644);
    assert.equal((await vault([...list, '--data-dir', dir])).code, 0);
    fs.chmodSync(file, 0o664);
    await refusedUntilFixed(
      dir,
      `the settings file ${file} is writable by other users (mode 0664)`,
      `chmod go-w ${file}`,
    );
  });

  test('a shared directory with other files is rejected without a chmod command, and no vault is created there', async () => {
    const dir = join(root, 'home');
    fs.mkdirSync(dir, { mode: 0o755 });
    fs.writeFileSync(join(dir, 'holiday.jpg'), '');
    const { code, stderr } = await vault(['serve', '--data-dir', dir]);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      `vault: the directory ${dir} holds other files and is open to other users\n` +
        '  Use --data-dir to name a directory for the vault alone. The vault creates it if it does not exist.\n',
    );
    assert.deepEqual(fs.readdirSync(dir), ['holiday.jpg']);
    const listed = await vault([...list, '--data-dir', dir]);
    assert.match(listed.stderr, /^vault: no vault in /);
    const empty = join(root, 'empty');
    fs.mkdirSync(empty, { mode: 0o755 });
    const made = await vault(['serve', '--data-dir', empty]);
    assert.match(made.stderr, new RegExp(`is readable by other users.*\n {2}Fix: chmod 700 ${empty}\n`));
  });

  test('a credential in $CREDENTIALS_DIRECTORY may be readable by its group, but not by others', async () => {
    const dir = copy('credential');
    const credentials = join(root, 'credentials');
    fs.mkdirSync(credentials);
    const file = join(credentials, 'master.key');
    fs.renameSync(join(dir, 'master.key'), file);
    const launch = { environment: { CREDENTIALS_DIRECTORY: credentials } };
    for (const mode of [0o400, 0o440, 0o600]) {
      fs.chmodSync(file, mode);
      const { code, stderr } = await vault([...list, '--data-dir', dir], launch);
      assert.equal(code, 0, stderr);
    }
    for (const mode of [0o444, 0o460]) {
      fs.chmodSync(file, mode);
      const { code, stderr } = await vault([...list, '--data-dir', dir], launch);
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`^vault: the credential ${file} is .* by other users`));
    }
    fs.chmodSync(file, 0o440);
    const { code } = await vault([...list, '--data-dir', dir, '--master-key-file', file]);
    assert.equal(code, 1, 'elsewhere a group is a group');
  });
});

suite('files of another user', () => {
  test(
    'root gets the sudo command that runs as the user of the vault, and changes nothing',
    rootOnly,
    async () => {
      const dir = copy('of-nobody');
      execFileSync('chown', ['-R', 'nobody', dir]);
      const words = [
        'api-key',
        'create',
        "--name=the client's",
        '--scope=certificates:read',
        '--certificate=*',
      ];
      const outcome = await vault([...words, '--data-dir', dir], { program: fromExecutable });
      assert.deepEqual([outcome.code, outcome.stdout], [1, '']);
      assert.equal(
        outcome.stderr,
        `vault: the data directory ${dir} belongs to nobody, not to ${me}\n` +
          "  Try: sudo -u nobody vault api-key create '--name=the client'\\''s' " +
          `--scope=certificates:read '--certificate=*' --data-dir ${dir}\n` +
          `  Or, if no server runs as that user, change the owner: chown -R ${me} ${dir}\n`,
      );
      const owners = fs.readdirSync(dir).map((name) => fs.statSync(join(dir, name)).uid);
      assert.deepEqual(new Set(owners), new Set([nobody.uid]), 'root has left nothing there');
      const [, command = ''] = /sudo -u nobody (vault .*)\n/.exec(outcome.stderr) ?? [];
      // What sudo does: the same words, as that user.
      const script = command.replace(/^vault/, enterable(fromExecutable[0]));
      assert.match(execFileSync('sh', ['-c', script], { ...nobody, encoding: 'utf8' }), /^vk_/);
    },
  );

  test('a user without a name is printed as a number', rootOnly, async () => {
    const dir = copy('of-12345');
    execFileSync('chown', ['-R', '12345', dir]);
    const { stderr } = await vault(['renewals', 'list', '--data-dir', dir], { program: fromExecutable });
    assert.match(stderr, /belongs to the user 12345, not to /);
    assert.match(stderr, /sudo -u '#12345' vault renewals list --data-dir /);
  });

  test(
    'a user gets the sudo command for a vault that root owns, whether it is readable or not',
    rootOnly,
    async () => {
      const dir = copy('of-root');
      for (const mode of [0o700, 0o755]) {
        fs.chmodSync(dir, mode);
        const { code, stderr } = await vault([...list, '--data-dir', dir], nobody);
        assert.equal(code, 1);
        assert.equal(
          stderr,
          `vault: the data directory ${dir} belongs to root, not to nobody\n` +
            `  Try: sudo vault certificate list --json --data-dir ${dir}\n` +
            `  Or, if no server runs as that user, change the owner: sudo chown -R nobody ${dir}\n`,
        );
      }
    },
  );

  test(
    "files that root owns in a user's vault are reported with the chown command that fixes them",
    rootOnly,
    async () => {
      for (const name of ['vault.db-wal', 'master.key']) {
        const dir = copy(`left-${name}`);
        execFileSync('chown', ['-R', 'nobody', dir]);
        const file = join(dir, name);
        fs.chownSync(file, 0, 0);
        const run = () => vault([...list, '--data-dir', dir], nobody);
        const { code, stderr } = await run();
        assert.equal(code, 1);
        const kind = name === 'master.key' ? 'the key file' : 'the database file';
        assert.equal(
          stderr,
          `vault: ${kind} ${file} belongs to root, not to nobody\n  Fix: sudo chown nobody ${file}\n`,
        );
        execFileSync('chown', ['nobody', file]);
        assert.equal((await run()).code, 0);
      }
    },
  );

  test(
    'a settings file that root owns is accepted, and one of another user is rejected',
    rootOnly,
    async () => {
      const dir = copy('settings-of-root');
      execFileSync('chown', ['-R', 'nobody', dir]);
      const file = join(root, 'etc-vault.yaml');
      fs.writeFileSync(file, 'log_level: debug\n', { mode: 0o644 });
      const args = [...list, '--data-dir', dir, '--config', file];
      assert.equal((await vault(args, nobody)).code, 0);
      fs.chownSync(file, 12_345, 0);
      const { code, stderr } = await vault(args, nobody);
      assert.equal(code, 1);
      assert.match(stderr, /^vault: the settings file \S+ belongs to the user 12345, not to nobody\n/);
    },
  );

  test(
    'root gets the sudo command of the data directory even if the vault has a settings file',
    rootOnly,
    async () => {
      const dir = copy('settings-of-nobody');
      fs.writeFileSync(join(dir, 'vault.yaml'), `backup_dir: ${dir}-backups\n`, { mode: 0o600 });
      fs.mkdirSync(`${dir}-backups`, { mode: 0o700 });
      execFileSync('chown', ['-R', 'nobody', dir, `${dir}-backups`]);
      for (const words of [list, ['serve', '--listen=127.0.0.1:0']]) {
        const outcome = await vault([...words, '--data-dir', dir], { program: fromExecutable });
        assert.equal(outcome.code, 1);
        assert.equal(
          outcome.stderr,
          `vault: the data directory ${dir} belongs to nobody, not to ${me}\n` +
            `  Try: sudo -u nobody vault ${words.join(' ')} --data-dir ${dir}\n` +
            `  Or, if no server runs as that user, change the owner: chown -R ${me} ${dir}\n`,
        );
      }
    },
  );

  test('a credential that root owns is accepted', rootOnly, async () => {
    const dir = copy('credential-of-root');
    execFileSync('chown', ['-R', 'nobody', dir]);
    const credentials = join(root, 'credentials-of-root');
    fs.mkdirSync(credentials, { mode: 0o755 });
    const file = join(credentials, 'master.key');
    fs.renameSync(join(dir, 'master.key'), file);
    // systemd lets the service read it by an access list, which looks like this.
    fs.chownSync(file, 0, nobody.gid);
    fs.chmodSync(file, 0o440);
    const launch = { ...nobody, environment: { CREDENTIALS_DIRECTORY: credentials } };
    const { code, stderr } = await vault([...list, '--data-dir', dir], launch);
    assert.equal(code, 0, stderr);
  });
});

suite('the HTTPS key file', needs('openssl'), () => {
  test(
    'is rejected when others can read it, and accepted when root owns it and the group can read it',
    rootOnly,
    async (t) => {
      const dir = join(root, 'https');
      fs.mkdirSync(dir, { mode: 0o755 });
      const { fullchainPath, leaf } = makeChain(dir, { keyAlgorithm: 'ec256' });
      const files = ['--tls-cert-file', fullchainPath, '--tls-key-file', leaf.keyPath];
      fs.chmodSync(leaf.keyPath, 0o640);
      const data = copy('https-data');
      const { code, stdout, stderr } = await vault(['serve', '--data-dir', data, ...files]);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert(
        stderr.includes(
          `vault: the key file ${leaf.keyPath} is readable by other users (mode 0640)\n` +
            `  Fix: chmod 600 ${leaf.keyPath}\n`,
        ),
        stderr,
      );
      execFileSync('chown', ['-R', 'nobody', data]);
      fs.chownSync(leaf.keyPath, 0, nobody.gid);
      fs.chmodSync(fullchainPath, 0o644);
      const server = await serve(t, data, { ...nobody, args: files });
      assert.match(server.url, /^https:/);
      await server.end();
      fs.chmodSync(leaf.keyPath, 0o644);
      const refused = await vault(['serve', '--data-dir', data, ...files], nobody);
      assert.match(refused.stderr, /is readable by other users \(mode 0644\)\n {2}Fix: sudo chmod 640 /);
    },
  );
});

/** What a command needs beside what its options say, to come as far as the vault. */
const more: Readonly<Record<string, readonly string[]>> = {
  'admin create': ['--password-stdin'],
  'admin update': ['--role=viewer'],
  'api-key update': ['--expires-at=90d'],
  'acme-client update': ['--rate=none'],
  'fleet forget': ['--host=www1'],
  'endpoint update': ['--interval=1h'],
  'deploy-target update': ['--add-certificate=web'],
  'replace start': ['--key-compromised=web', '--yes'],
  'ca export-root-key': ['--passphrase-file=-'],
  'ca import-root-key': ['--passphrase-file=-'],
  'admin reset-password': ['--password-stdin'],
  'certificate create': ['--domain=a.test'],
  'issuer add': ['--directory=https://ca.test/directory', '--accept-terms'],
  'issuer update': ['--email=ops@example.test'],
  'issuer profile update': ['--lifetime=7d'],
  'api-key create': ['--role=viewer'],
  'enrollment create': ['--certificate=*'],
  'certificate renew': ['--all'],
  'certificate update': ['--reuse-key'],
  'notification update': ['--event=all'],
  apply: [`--file=${join(root, 'desired.yaml')}`],
};

const values: Readonly<Record<string, string>> = {
  // Any file that can be read.
  'ca import-root-key file': import.meta.filename,
  'ca import chain': import.meta.filename,
  'enrollment create expires-at': '1d',
  'deploy-target add type': 'exec',
  // Any mapping.
  'deploy-target add secret-file': join(import.meta.dirname, '..', '..', '..', 'package.json'),
  id: '1',
  reason: 'superseded',
  role: 'viewer',
  SCOPE: 'certificates:read',
  DOMAIN: 'a.test',
  NETWORK: '10.0.0.1',
  ZONE: 'a.test',
  TYPE: 'manual',
};

/**
 * Commands that come to no vault, and the one that says of any what is wrong with it
 * (test/cli/commands/doctor/doctor.test.ts).
 */
const withoutVault = [
  ...['systemd-unit', 'licenses', 'version', 'completion', 'man', 'doctor'],
  ...['demo', 'inspect', 'dns-provider types', 'deploy-target types', 'login', 'logout'],
];

/** The words of a command with all that it demands. */
function wordsFor({ words, options }: KnownCommand): string[] {
  const required = Object.entries(options).filter(([, { required }]) => required === true);
  const given = required.map(([name, option]) => {
    const hint = 'valueHint' in option ? (option.valueHint ?? '') : '';
    const value = values[`${words.join(' ')} ${name}`] ?? values[name] ?? values[hint] ?? 'web';
    return option.type === 'positional' ? value : `--${name}=${value}`;
  });
  return [...words, ...given, ...(more[words.join(' ')] ?? [])];
}

suite('every command', () => {
  test('rejects a data directory that others can read', needs('openssl'), async () => {
    const dir = copy('for-all');
    fs.chmodSync(dir, 0o750);
    const { fullchainPath, leaf } = makeChain(root, { label: 'import', keyAlgorithm: 'ec384' });
    const files = [`--fullchain=${fullchainPath}`, `--private-key=${leaf.keyPath}`];
    const commands = await allCommands();
    assert(commands.length > 25, String(commands.length));
    const left = commands.filter(({ words }) => !withoutVault.includes(words.join(' ')));
    const work = async () => {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const words = [...wordsFor(next), ...(next.words.join(' ') === 'certificate import' ? files : [])];
        const { code, stdout, stderr } = await vault([...words, '--data-dir', dir], {
          input: 'a long enough password\n',
        });
        assert.deepEqual([code, stdout], [1, ''], `${words.join(' ')}: ${stderr}`);
        assert.match(stderr, / is readable by other users \(mode 0750\)\n {2}Fix: chmod 700 /);
      }
    };
    await Promise.all([work(), work(), work()]);
  });
});

suite('every file that the vault creates', () => {
  test("is readable only by the vault's user, with any umask, and the new vault is logged", async (t) => {
    const dir = join(root, 'made', 'deep');
    const program = ['/bin/sh', '-c', 'umask 000; exec "$0" "$@"', fromExecutable[0]];
    const key = join(root, 'made-keys', 'kept.key');
    const server = await serve(t, dir, { program, args: ['--master-key-file', key] });
    const names = fs.readdirSync(dir).sort();
    const [lock = ''] = names.filter((name) => name.startsWith('vault.lock-'));
    assert.deepEqual(names, ['vault.db', 'vault.db-shm', 'vault.db-wal', lock, 'vault.mark']);
    const modeOf = (path: string) => (fs.statSync(path).mode & 0o7777).toString(8);
    for (const name of names) assert.equal(modeOf(join(dir, name)), '600', name);
    assert.equal(modeOf(key), '600');
    for (const path of [dir, join(root, 'made'), join(root, 'made-keys')]) assert.equal(modeOf(path), '700');
    const status = fs.existsSync('/proc/self/status')
      ? fs.readFileSync(`/proc/${server.pid}/status`, 'utf8')
      : 'Umask:\t0077\n';
    assert.match(status, /^Umask:\t0077$/m);
    await server.end();
    const made = /"level":"info".*"msg":"vault created; keep a copy of its master key on another machine"/;
    assert.match(server.log(), made);
    assert.deepEqual(fs.readdirSync(dir).sort(), ['vault.db', 'vault.mark']);
    for (const name of fs.readdirSync(dir)) assert.equal(modeOf(join(dir, name)), '600', name);
  });
});
