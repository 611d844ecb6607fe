/** Deploy targets of the type ssh, on OpenSSH's server. */
import assert from 'node:assert/strict';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import {
  failure,
  install,
  isInstalled,
  material,
  type SshSettings,
} from '../harness/targets/ssh-fixtures.ts';
import { type KeyPair, type KeyType, needsSshd, type Sshd, sshd, sshKey } from '../harness/targets/sshd.ts';
import { tempDir } from '../harness/temp-dir.ts';

let key: KeyPair;
let server: Sshd;

/** Settings for files in a folder, by their names. */
function settings(
  dir: string,
  names: Record<string, string>,
  others: Partial<SshSettings> = {},
  on = server,
): SshSettings {
  return {
    ...{ port: on.port, user: on.user, host_key: on.hostKeys.ed25519 ?? '', private_key: key.privateKey },
    files: Object.fromEntries(Object.entries(names).map(([kind, name]) => [kind, join(dir, name)])),
    ...others,
  };
}

const pair = { fullchain: '{certificate}.pem', private_key: '{certificate}.key' };

const modeOf = (path: string) => (statSync(path).mode & 0o7777).toString(8);

async function started(t: TestContext, sftp: string | null): Promise<Sshd> {
  return sshd(t, { authorized: [key.publicKey], sftp });
}

suite('on a server with OpenSSH', needsSshd(), () => {
  const ends: (() => unknown)[] = [];
  const suiteEnd = { after: (end: () => unknown) => ends.push(end) } as unknown as TestContext;
  before(async () => {
    key = await sshKey(suiteEnd, 'ed25519');
    server = await sshd(suiteEnd, { authorized: [key.publicKey] });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  suite('the files', () => {
    test('arrive with the right contents, permissions for new files and without leftovers', async (t) => {
      const dir = tempDir(t);
      const all = {
        ...pair,
        ...{ certificate: 'web.crt', chain: 'chain.pem', combined: 'web.both' },
      };
      assert.deepEqual(await install(settings(dir, all)), {});
      const read = (name: string) => readFileSync(join(dir, name), 'utf8');
      const { certificate, chain, fullchain } = material();
      assert.deepEqual(readdirSync(dir).sort(), ['chain.pem', 'web.both', 'web.crt', 'web.key', 'web.pem']);
      assert.deepEqual(
        [read('web.crt'), read('chain.pem'), read('web.pem')],
        [certificate, chain, fullchain],
      );
      assert.equal(read('web.both'), read('web.key') + fullchain);
      assert(new X509Certificate(read('web.pem')).checkPrivateKey(createPrivateKey(read('web.key'))));
      assert.deepEqual(
        ['web.key', 'web.both', 'web.pem', 'web.crt', 'chain.pem'].map((name) => modeOf(join(dir, name))),
        ['600', '600', '644', '644', '644'],
      );
    });

    test('get their permissions against the umask of the server, the private key those of the setting', async (t) => {
      const dir = tempDir(t);
      const strict = await started(t, 'internal-sftp -u 0077');
      await install(settings(dir, pair, { private_key_mode: '0640' }, strict));
      assert.deepEqual([modeOf(join(dir, 'web.key')), modeOf(join(dir, 'web.pem'))], ['640', '644']);
    });

    test('keep the permissions and the owner of those before, and a symbolic link becomes a file', async (t) => {
      const dir = tempDir(t);
      for (const name of ['web.key', 'elsewhere']) writeFileSync(join(dir, name), 'before', { mode: 0o604 });
      symlinkSync(join(dir, 'elsewhere'), join(dir, 'web.pem'));
      const isRoot = process.getuid?.() === 0;
      if (isRoot) chownSync(join(dir, 'web.key'), 1234, 5678);
      await install(settings(dir, pair));
      const { uid, gid } = statSync(join(dir, 'web.key'));
      assert.deepEqual([modeOf(join(dir, 'web.key')), modeOf(join(dir, 'web.pem'))], ['604', '604']);
      if (isRoot) assert.deepEqual([uid, gid], [1234, 5678]);
      assert.equal(readFileSync(join(dir, 'elsewhere'), 'utf8'), 'before');
    });

    test('are whole whenever a program reads them, and replace leftovers of an upload', async (t) => {
      const dir = tempDir(t);
      const path = join(dir, 'web.pem');
      writeFileSync(`${path}.vault-new`, 'leftover', { mode: 0o400 });
      const config = settings(dir, pair);
      await install(config);
      const inodes = new Set([statSync(path).ino]);
      let isDone = false;
      const updates = (async () => {
        for (const version of [2, 1, 2]) {
          await install(config, { version });
          inodes.add(statSync(path).ino);
        }
      })().finally(() => {
        isDone = true;
      });
      const seen = new Set<string>();
      while (!isDone) {
        seen.add(readFileSync(path, 'utf8'));
        await new Promise(setImmediate);
      }
      await updates;
      assert(inodes.size > 1);
      assert.deepEqual([...seen].sort(), [1, 2].map((version) => material(version).fullchain).sort());
      assert.deepEqual(readdirSync(dir).sort(), ['web.key', 'web.pem']);
    });

    for (const [name, prepare, reason] of [
      ['in a folder that is missing', undefined, 'No such file'],
      ['in place of a folder', (dir: string) => mkdirSync(dir), 'is a directory'],
    ] as const) {
      test(`${name} are refused, and none of the others is replaced`, async (t) => {
        const dir = tempDir(t);
        const other = join(dir, 'sub');
        prepare?.(other);
        writeFileSync(join(dir, 'web.key'), 'before');
        const place = prepare === undefined ? 'sub/web.pem' : 'sub';
        const message = await failure(install(settings(dir, { ...pair, fullchain: place })));
        assert.match(message, new RegExp(`${join(dir, place)}.*${reason}`));
        assert.equal(readFileSync(join(dir, 'web.key'), 'utf8'), 'before');
        assert.deepEqual(readdirSync(dir).sort(), prepare === undefined ? ['web.key'] : ['sub', 'web.key']);
      });
    }

    test('on a server that may not be written to are refused with the path', async (t) => {
      const dir = tempDir(t);
      const readOnly = await started(t, 'internal-sftp -R');
      const message = await failure(install(settings(dir, pair, {}, readOnly)));
      assert.equal(message, `failed to remove ${dir}/web.key.vault-new: Permission denied`);
      assert.deepEqual(readdirSync(dir), []);
    });
  });

  suite('the command', () => {
    const reload = async (dir: string, command: string) =>
      (await install(settings(dir, pair, { command }))).reload;

    test('runs when all files are in place, and its last line of output is kept', async (t) => {
      const dir = tempDir(t);
      const command = `cat ${dir}/web.key ${dir}/web.pem >${dir}/seen; echo first; echo höhe >&2; sleep 0; printf '\\n'`;
      assert.deepEqual(await reload(dir, command), { result: 'ok', output: 'höhe' });
      const { privateKey, fullchain } = material();
      assert.equal(readFileSync(join(dir, 'seen'), 'utf8'), privateKey.expose() + fullchain);
    });

    for (const [name, command, result, output] of [
      ['without output succeeds', 'true', 'ok', null],
      ['that fails keeps its output', 'echo nginx: [emerg] bad >&2; exit 3', 'failed', 'nginx: [emerg] bad'],
      ['that fails silently keeps its exit code', 'exit 3', 'failed', 'exit code 3'],
      ['that a signal ends keeps the signal', 'kill -9 $$', 'failed', 'ended by SIGKILL'],
      [
        'that is missing keeps the reason',
        '/nowhere/reload',
        'failed',
        /nowhere\/reload: .*not found|No such file/,
      ],
      ['that prints megabytes keeps the last line', 'seq 1 1000000', 'ok', '1000000'],
      ['that reads its input gets an empty one', 'cat; echo end', 'ok', 'end'],
    ] as const) {
      test(`a command ${name}`, async (t) => {
        const found = await reload(tempDir(t), command);
        assert.equal(found?.result, result);
        if (output instanceof RegExp) assert.match(found.output ?? '', output);
        else assert.equal(found.output, output);
      });
    }
  });

  suite('the daily check', () => {
    const all = { ...pair, combined: 'web.both' };
    const cases: readonly (readonly [string, (path: (name: string) => string) => void, boolean])[] = [
      ['finds an installation', () => undefined, true],
      [
        'finds a file with changed bytes',
        (path) => writeFileSync(path('web.pem'), 'x'.repeat(material().fullchain.length)),
        false,
      ],
      ['finds a file that was cut', (path) => writeFileSync(path('web.pem'), ''), false],
      ['finds a removed chain', (path) => rmSync(path('web.pem')), false],
      ['finds a removed private key', (path) => rmSync(path('web.key')), false],
      ['finds an empty private key', (path) => writeFileSync(path('web.key'), ''), false],
      [
        'finds a combined file of another version',
        (path) => writeFileSync(path('web.both'), material(2).privateKey.expose() + material(2).fullchain),
        false,
      ],
      [
        'finds a combined file without its private key',
        (path) => writeFileSync(path('web.both'), material().fullchain),
        false,
      ],
      [
        'finds a folder in place of a file',
        (path) => {
          rmSync(path('web.pem'));
          mkdirSync(path('web.pem'));
        },
        false,
      ],
    ];
    for (const [name, change, expected] of cases) {
      test(`${name}`, async (t) => {
        const dir = tempDir(t);
        await install(settings(dir, all));
        change((file) => join(dir, file));
        assert.equal(await isInstalled(settings(dir, all)), expected);
      });
    }

    test('finds that another version is installed', async (t) => {
      const dir = tempDir(t);
      await install(settings(dir, all));
      assert.equal(await isInstalled(settings(dir, all), 2), false);
    });
  });

  suite('the keys', () => {
    for (const [type, userType] of [
      ['ed25519', 'rsa'],
      ['ecdsa', 'ed25519'],
      ['rsa', 'ecdsa'],
    ] as const satisfies readonly (readonly [KeyType, KeyType])[]) {
      test(`of a server with ${type} and of a user with ${userType} are accepted`, async (t) => {
        const dir = tempDir(t);
        const user = await sshKey(t, userType);
        const other = await sshd(t, { hostKeys: [type], authorized: [user.publicKey] });
        const host_key = `[127.0.0.1]:${other.port} ${other.hostKeys[type] ?? ''}`;
        const config = settings(dir, pair, { host_key, private_key: user.privateKey }, other);
        await install(config);
        assert.equal(await isInstalled(config), true);
      });
    }

    test('of a server other than the expected one is shown, and no file is sent', async (t) => {
      const dir = tempDir(t);
      const { publicKey } = await sshKey(t, 'ed25519');
      const message = await failure(install(settings(dir, pair, { host_key: publicKey })));
      const [type, base64] = (server.hostKeys.ed25519 ?? '').split(' ');
      assert.equal(message, `the server has another public key than host_key: ${type} ${base64}`);
      assert.deepEqual(readdirSync(dir), []);
    });

    test('of a server that has none of the expected type gives the type', async (t) => {
      const { publicKey } = await sshKey(t, 'ecdsa');
      const message = await failure(install(settings(tempDir(t), pair, { host_key: publicKey })));
      assert.equal(message, 'the server has no public key of the type of host_key, ecdsa-sha2-nistp256');
    });

    test('of a user whom the server does not know is rejected', async (t) => {
      const { privateKey } = await sshKey(t, 'ed25519');
      const message = await failure(install(settings(tempDir(t), pair, { private_key: privateKey })));
      assert.equal(message, `the server rejected the user ${server.user} and its private key`);
    });

    test('of a user are decrypted with their passphrase, and refused without it', async (t) => {
      const dir = tempDir(t);
      const user = await sshKey(t, 'ed25519', { passphrase: 'correct horse' });
      const other = await sshd(t, { authorized: [user.publicKey] });
      const attempt = (passphrase?: string, private_key = user.privateKey) =>
        install(settings(dir, pair, { private_key, passphrase }, other));
      assert.deepEqual(await attempt('correct horse'), {});
      assert.match(await failure(attempt('wrong')), /^cannot read private_key: .*bad passphrase/);
      assert.match(await failure(attempt()), /^cannot read private_key: .*no passphrase given/);
    });

    for (const [name, text, message] of [
      ['no key', () => 'secret', 'cannot read private_key: Unsupported key format'],
      ['a public key', () => key.publicKey, 'cannot read private_key: it is a public key'],
      [
        'half a key',
        () => key.privateKey.replace(/(?<=KEY-----\n.{30}).*/, ''),
        /^cannot read private_key: (Malformed|Unsupported)/,
      ],
    ] as const) {
      test(`of a user cannot be ${name}`, async (t) => {
        const found = await failure(install(settings(tempDir(t), pair, { private_key: text() })));
        if (typeof message === 'string') assert.equal(found, message);
        else assert.match(found, message);
      });
    }

    test('of a user that would take minutes to decrypt are refused before they are tried', async (t) => {
      const { privateKey } = await sshKey(t, 'ed25519', { passphrase: 'secret', rounds: 33 });
      const config = settings(tempDir(t), pair, { private_key: privateKey, passphrase: 'secret' });
      assert.match(
        await failure(install(config)),
        /^private_key is encrypted with 33 rounds, but at most 32/,
      );
    });
  });

  test('a server without SFTP is reported', async (t) => {
    const other = await started(t, null);
    const message = await failure(install(settings(tempDir(t), pair, {}, other)));
    assert.match(message, /^the server offers no SFTP: /);
  });

  test('a server whose login scripts print into SFTP is reported', async (t) => {
    const other = await started(t, '/bin/echo Welcome to this server');
    const message = await failure(install(settings(tempDir(t), pair, {}, other)));
    assert.match(message, /^the server offers no SFTP: Packet length \d+ exceeds/);
  });

  test('operations one after another leave no listeners, which Node would warn about', async (t) => {
    const warnings: string[] = [];
    const note = (warning: Error) => warnings.push(warning.name);
    process.on('warning', note);
    t.after(() => process.off('warning', note));
    const dir = tempDir(t);
    const { signal } = new AbortController();
    const config = settings(
      dir,
      { ...pair, certificate: 'a', chain: 'b', combined: 'c' },
      { command: 'true' },
    );
    for (let round = 0; round < 12; round += 1) await install(config, { signal });
    await new Promise(setImmediate);
    assert.deepEqual(warnings, []);
  });
});
