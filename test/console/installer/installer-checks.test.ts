/** The console validates installer options in the same way as the installer. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { type InstallerErrors, installerErrors } from '../../../assets/console/installer/installer-checks.ts';
import type { InstallerChoices } from '../../../assets/console/installer/shell-command.ts';
import { machine } from '../../harness/client/installer.ts';
import { needs } from '../../harness/processes/missing-program.ts';

const sound: InstallerChoices = {
  ...{ server: 'https://vault.example', trust: 'public', pin: '', caFile: '', certificate: 'web' },
  files: [{ artifact: 'fullchain.crt', output: 'tls.crt' }],
  keystorePasswordFile: '',
  ...{ destination: '/srv/tls', reloadCommand: '', schedule: '', owner: '', group: '', mode: '', verify: '' },
  withLocalKey: false,
  withSudo: false,
};
const pin = `sha256//${'A'.repeat(43)}=`;
const file = (artifact: string, output = '') => ({ artifact, output });

/** Values by field, with the option that the installer names in its error. */
const cases: readonly [
  field: keyof InstallerErrors,
  option: string,
  values: readonly Partial<InstallerChoices>[],
][] = [
  [
    'files',
    '--file',
    [
      { files: [file('fullchain.crt'), file('private.key', 'fullchain.CRT')] },
      { files: [file('fullchain.crt', '..')] },
      { files: [file('fullchain.crt', '.vault-x')] },
      { files: [file('fullchain.crt', 'x'.repeat(201))] },
      { files: [file('fullchain.crt', 'it is "fine"'), file('private.key')] },
      { files: [file('fullchain.crt'), file('certificate.der')], withLocalKey: true },
      { files: [file('fullchain.crt'), file('private.key', 'tls.key')], withLocalKey: true },
      { files: [file('combined.pem')], withLocalKey: true },
    ],
  ],
  [
    'destination',
    '--destination',
    [...['/', '//', '/./', '/a/../b', '/..', '/a\nb', '/srv/it’s here', '/a/..b']].map((destination) => ({
      destination,
    })),
  ],
  ['reloadCommand', '--reload-command', [{ reloadCommand: 'a\nb' }, { reloadCommand: 'a && "b"' }]],
  [
    'schedule',
    '--schedule',
    [
      '@daily',
      '@hourly',
      '@weekly',
      '17 3 * * *',
      '*/5 1-3 * jan mon',
      'daily',
      '1 2 3',
      '@soon',
      '17;3 * * * *',
    ].map((schedule) => ({ schedule })),
  ],
  [
    'verify',
    '--verify',
    [
      ...['localhost:443', '[::1]:443', 'localhost', ':443', 'host:x', '-h:1', 'a b:1', 'host:'].map(
        (verify) => ({
          verify,
        }),
      ),
      { verify: 'localhost:443', files: [file('private.key')] },
    ],
  ],
  ['owner', '--owner', ['postgres', '-x', 'a b', 'DOMAIN\\user', 'a;b'].map((owner) => ({ owner }))],
  ['group', '--group', ['ssl-cert', '-x', 'ä'].map((group) => ({ group }))],
  ['mode', '--mode', ['0640', '640', '0888', '64', '1777', 'u+r', '00640'].map((mode) => ({ mode }))],
  [
    'pin',
    '--pin',
    [pin, 'sha256//short=', `sha256/${'A'.repeat(43)}=`, `sha256//${'A'.repeat(44)}`].map((one) => ({
      trust: 'pin' as const,
      pin: one,
    })),
  ],
];

suite('console and installer accept and reject the same options', needs('openssl'), () => {
  for (const [field, option, values] of cases) {
    for (const value of values) {
      const choices = { ...sound, ...value };
      const found = installerErrors(choices)[field];
      test(`${option} ${JSON.stringify(value[field] ?? value)}: ${found ?? 'accepted'}`, async (t) => {
        const { code, stderr } = await machine(t).run([...optionsOf(choices), '--dry-run']);
        if (found === undefined) assert.equal(code, 0, stderr);
        else {
          assert.equal(code, 2, stderr);
          assert.ok(stderr.includes(option), stderr);
        }
      });
    }
  }
});

test('a keystore needs the absolute path of a password file, and other files need none', () => {
  const errors = (choices: Partial<InstallerChoices>) =>
    Object.keys(installerErrors({ ...sound, ...choices }));
  const files = [file('keystore.p12')];
  assert.deepEqual(errors({ files }), ['keystorePasswordFile']);
  assert.deepEqual(errors({ files, keystorePasswordFile: 'password' }), ['keystorePasswordFile']);
  assert.deepEqual(errors({ files, keystorePasswordFile: '/a\nb' }), ['keystorePasswordFile']);
  assert.deepEqual(errors({ files, keystorePasswordFile: '/root/password' }), []);
  assert.deepEqual(errors({ keystorePasswordFile: 'password' }), []);
});

test('the root certificate needs an absolute path, and is checked only if it is used', () => {
  const errors = (choices: Partial<InstallerChoices>) =>
    Object.keys(installerErrors({ ...sound, ...choices }));
  assert.deepEqual(errors({ trust: 'ca-file' }), ['caFile']);
  assert.deepEqual(errors({ trust: 'ca-file', caFile: 'ca.pem' }), ['caFile']);
  assert.deepEqual(errors({ trust: 'ca-file', caFile: '/etc/ca.pem' }), []);
  assert.deepEqual(errors({ trust: 'pin' }), ['pin']);
  assert.deepEqual(errors({ caFile: 'ca.pem', pin: 'x' }), []);
  assert.deepEqual(errors({ files: [], destination: 'tls' }), ['files', 'destination']);
});

function optionsOf(choices: InstallerChoices): string[] {
  const { server, certificate, files, destination, reloadCommand, ...others } = choices;
  const named = { '--server': server, '--certificate': certificate, '--destination': destination };
  const optional = {
    ...{ '--reload-command': reloadCommand, '--schedule': others.schedule, '--verify': others.verify },
    ...{ '--owner': others.owner, '--group': others.group, '--mode': others.mode },
  };
  const given = Object.entries({ ...named, ...optional }).filter(([, value]) => value !== '');
  const names = files.map(({ artifact, output }) => (output === '' ? artifact : `${artifact}=${output}`));
  return [
    ...given.flat(),
    ...names.flatMap((name) => ['--file', name]),
    ...(others.withLocalKey ? ['--local-key'] : []),
    ...(others.trust === 'pin' ? ['--pin', others.pin] : []),
  ];
}
