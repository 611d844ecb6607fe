/** The settings of deploy targets of the type ssh, and host keys as ssh-keyscan prints them. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import ssh2 from 'ssh2';
import { hostKeyOf, hostKeyText } from '../../src/targets/ssh-host-key.ts';
import { sshTarget } from '../../src/targets/ssh-target.ts';

const { public: host_key } = ssh2.utils.generateKeyPairSync('ed25519');

const good = {
  ...{ host: 'web1.example.com', user: 'deploy', host_key, private_key: 'key' },
  files: { fullchain: '/tls/{certificate}.pem' },
};

/** The problems of settings, as `path message`. */
function problems(settings: object): string[] {
  const { error } = sshTarget.config.safeParse(settings);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join('.')} ${message}`);
}

suite('settings', () => {
  test('have defaults, and the host, the destination and the deadline follow from them', () => {
    const config = sshTarget.config.parse(good);
    assert.deepEqual(config, { ...good, port: 22, private_key_mode: '0600', timeout: 60 });
    assert.equal(sshTarget.host(config), 'web1.example.com');
    assert.equal(sshTarget.destination(config, 'web'), '/tls/web.pem');
    assert.equal(sshTarget.patience(config), 60_000);
  });

  for (const [name, change, expected] of [
    ['no host', { host: undefined }, ['host is missing; it must be the name or address of the server']],
    [
      'a port in the host',
      { host: 'ssh://web1' },
      ['host must be the name or address of a server; the port is a setting of its own'],
    ],
    ['a port that is too large', { port: 70_000 }, ['port Too big: expected number to be <=65535']],
    ['no user', { user: undefined }, ['user is missing; it must be the user on the server']],
    ['a user with a space', { user: 'a b' }, ['user must be a user name']],
    [
      'no host key',
      { host_key: undefined },
      ['host_key is missing; it must be the public key of the server, as ssh-keyscan prints it'],
    ],
    [
      'a fingerprint as host key',
      { host_key: 'SHA256:abc' },
      ['host_key must be the public key of the server, such as "ssh-ed25519 AAAA…"; ssh-keyscan prints it'],
    ],
    [
      'neither a key nor a password',
      { private_key: undefined },
      ['private_key or password is needed, not both'],
    ],
    ['a key and a password', { password: 'secret' }, ['private_key or password is needed, not both']],
    [
      'no files',
      { files: undefined },
      ['files is missing; it must be a mapping of fullchain, private_key and others to paths'],
    ],
    ['an empty mapping of files', { files: {} }, ['files must name at least one file']],
    [
      'a relative path',
      { files: { fullchain: 'tls/web.pem' } },
      ['files.fullchain must be an absolute path of a file; it may contain {certificate}'],
    ],
    [
      'a folder',
      { files: { fullchain: '/tls/' } },
      ['files.fullchain must be an absolute path of a file; it may contain {certificate}'],
    ],
    [
      'a path with a line break',
      { files: { fullchain: '/tls/a\nb' } },
      ['files.fullchain must be an absolute path of a file; it may contain {certificate}'],
    ],
    [
      'two files in one place',
      { files: { fullchain: '/tls/a', private_key: '/tls/a' } },
      ['files must not contain the same path twice'],
    ],
    ['an unknown file', { files: { chain: '/tls/b', pfx: '/tls/a' } }, ['files Unrecognized key: "pfx"']],
    [
      'permissions in another notation',
      { private_key_mode: '640' },
      ['private_key_mode must be file permissions, such as "0640"'],
    ],
    ['a command with a NUL', { command: 'a\0b' }, ['command must not contain a NUL character']],
    ['no time', { timeout: 0 }, ['timeout Too small: expected number to be >=1']],
    ['an unknown setting', { key: 'x' }, [' Unrecognized key: "key"']],
  ] as const) {
    test(`with ${name} are refused`, () => {
      assert.deepEqual(problems({ ...good, ...change }), expected);
    });
  }
});

suite('host keys', () => {
  const [type = '', base64 = ''] = host_key.split(' ');

  for (const [name, text, isKey] of [
    ['as in known_hosts', `web1.example.com ${type} ${base64}`, true],
    ['as in a .pub file', `${type} ${base64} root@web1`, true],
    ['with line breaks around', `\n${type} ${base64}\n`, true],
    ['without a type', base64, false],
    ['of another type', `ssh-rsa ${base64}`, false],
    ['of a type that is not supported', `ssh-dss ${base64}`, false],
    ['that is cut', `${type} ${base64.slice(0, 10)}`, false],
    ['without bytes', type, false],
    ['in other letters', `${type} ${base64.slice(0, -4)}äöü`, false],
    ['of the type __proto__', `__proto__ ${base64}`, false],
  ] as const) {
    test(`a key ${name} is ${isKey ? 'read' : 'refused'}`, () => {
      assert.equal(hostKeyOf(text) !== undefined, isKey);
    });
  }

  test('a key that is too long to show is shown as its fingerprint, and bytes that are no key are shown', () => {
    const { public: long } = ssh2.utils.generateKeyPairSync('rsa', { bits: 3072 });
    assert.match(hostKeyText(hostKeyOf(long)?.blob ?? Buffer.alloc(0)), /^ssh-rsa SHA256:[\w+/]{43}$/);
    assert.equal(hostKeyText(hostKeyOf(host_key)?.blob ?? Buffer.alloc(0)), `${type} ${base64}`);
    assert.equal(hostKeyText(Buffer.alloc(2)), ' AAA=');
  });
});
