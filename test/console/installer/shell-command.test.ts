/** The installer command: every value stays one argument of a shell. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type InstallerChoices,
  installerCommand,
  shellQuoted,
  storeTokenCommand,
  tokenFile,
} from '../../../assets/console/installer/shell-command.ts';
import { fuzzRuns } from '../../harness/fuzz-runs.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const cases = [
  ['nginx', 'nginx'],
  ['/etc/nginx/tls', '/etc/nginx/tls'],
  ['fullchain.crt=tls.crt', 'fullchain.crt=tls.crt'],
  ['', "''"],
  ['=', "'='"],
  ['two words', "'two words'"],
  ["it's", "'it'\\''s'"],
  ["'", "''\\'''"],
  ['$HOME `id` $(id)', "'$HOME `id` $(id)'"],
  ['a\\b', "'a\\b'"],
  ['*', "'*'"],
  ['~root', "'~root'"],
  ['nginx -t && systemctl reload nginx', "'nginx -t && systemctl reload nginx'"],
  ['17 3 * * *', "'17 3 * * *'"],
  ['a\nb', "'a\nb'"],
  ['#x;y|z>(q)!', "'#x;y|z>(q)!'"],
  ['ä', "'ä'"],
] as const;

for (const [text, quoted] of cases)
  test(`${JSON.stringify(text)} is quoted as ${JSON.stringify(quoted)}`, () =>
    assert.equal(shellQuoted(text), quoted));

test('a real shell restores the exact text', () => {
  const words = fc.array(
    fc.string({ unit: 'binary' }).filter((text) => !text.includes('\0')),
    { maxLength: 20 },
  );
  fc.assert(
    fc.property(words, (texts) => {
      const script = `printf '%s\\0' ${texts.map(shellQuoted).join(' ')}`;
      const printed = execFileSync('sh', ['-c', script], { encoding: 'utf8' });
      assert.equal(printed, texts.length === 0 ? '\0' : texts.map((text) => `${text}\0`).join(''));
    }),
    fuzzRuns(100),
  );
});

const choices: InstallerChoices = {
  server: 'https://vault.example',
  trust: 'public',
  pin: '',
  caFile: '',
  certificate: 'web',
  files: [
    { artifact: 'fullchain.crt', output: 'tls.crt' },
    { artifact: 'private.key', output: '' },
  ],
  keystorePasswordFile: '',
  destination: '/etc/nginx/tls',
  reloadCommand: 'nginx -t && systemctl reload nginx',
  schedule: '17 3 * * *',
  owner: '',
  group: '',
  mode: '',
  verify: '',
  withLocalKey: false,
  withSudo: true,
};

test('the command has the key in the environment and not in an argument, and one option per line', () => {
  assert.equal(
    installerCommand(choices, 'vk_abc.def'),
    [
      'curl -fsSL https://vault.example/client/install.sh | SERVICE_API_KEY=vk_abc.def sudo --preserve-env=SERVICE_API_KEY sh -s --',
      '--server https://vault.example',
      '--certificate web',
      '--file fullchain.crt=tls.crt',
      '--file private.key',
      '--destination /etc/nginx/tls',
      "--reload-command 'nginx -t && systemctl reload nginx'",
      "--schedule '17 3 * * *'",
    ].join(' \\\n  '),
  );
});

test('--local-key is the last option of the command', () => {
  assert.match(installerCommand({ ...choices, withLocalKey: true }, undefined), / \\\n {2}--local-key$/);
});

test('without sudo the key is in the environment of the shell only', () => {
  const command = installerCommand({ ...choices, withSudo: false }, 'vk_abc.def');
  assert.match(command, /install\.sh \| SERVICE_API_KEY=vk_abc\.def sh -s -- /);
});

test('with a pin, the script itself is also downloaded with the pin and without redirects', () => {
  const pin = `sha256//${'a+/'.repeat(14)}a=`;
  const command = installerCommand({ ...choices, trust: 'pin', pin }, undefined);
  const [first, server, option] = command.split(' \\\n  ');
  assert.equal(
    first,
    `curl -fsS --insecure --pinnedpubkey ${pin} https://vault.example/client/install.sh | sudo sh -s --`,
  );
  assert.deepEqual([server, option], ['--server https://vault.example', `--pin ${pin}`]);
  assert.doesNotMatch(command, /-fsSL|--ca-file/);
});

test('with a root file, the first request and all others trust it', () => {
  const command = installerCommand(
    { ...choices, trust: 'ca-file', caFile: "/etc/ca's.pem", mode: '0640' },
    undefined,
  );
  assert.match(command, /^curl -fsS --cacert '\/etc\/ca'\\''s\.pem' https:/);
  assert.match(command, / --ca-file '\/etc\/ca'\\''s\.pem' \\\n/);
  assert.match(command, / --mode 0640/);
  assert.doesNotMatch(command, /--pin|--insecure/);
});

test('the command has --keystore-password-file only with a keystore file', () => {
  const keystorePasswordFile = '/root/the password';
  const files = [{ artifact: 'keystore.p12', output: '' }];
  const command = installerCommand({ ...choices, files, keystorePasswordFile }, undefined);
  assert.match(command, /--file keystore\.p12 \\\n {2}--keystore-password-file '\/root\/the password' \\\n/);
  assert.doesNotMatch(installerCommand({ ...choices, keystorePasswordFile }, undefined), /password/);
});

test('without a key, the installer prompts for it', () => {
  const command = installerCommand(choices, undefined);
  assert.match(command, /\| sudo sh -s -- /);
  assert.doesNotMatch(command, /SERVICE_API_KEY/);
});

test('the shell passes the selected options to the installer', () => {
  const odd = {
    ...choices,
    certificate: '*.example',
    destination: "/srv/it's here",
    reloadCommand: 'echo "$x"',
  };
  const command = installerCommand({ ...odd, withSudo: false }, 'vk_a.b').replace(/^curl \S+ \S+ \| /, '');
  const script = command.replace(' sh -s -- ', ` sh -c 'printf "%s\\n" "$SERVICE_API_KEY" "$@"' sh `);
  const printed = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n');
  assert.deepEqual(printed, [
    ...['vk_a.b', '--server', 'https://vault.example', '--certificate', '*.example'],
    ...['--file', 'fullchain.crt=tls.crt', '--file', 'private.key', '--destination', "/srv/it's here"],
    ...['--reload-command', 'echo "$x"', '--schedule', '17 3 * * *'],
  ]);
});

test('with an enrollment, the installer reads the token from the file where the other command stores it', (t) => {
  const command = installerCommand(choices, undefined, tokenFile);
  assert.match(
    command,
    /\| sudo sh -s -- \\\n {2}--server \S+ \\\n {2}--enroll \/root\/vault-enrollment-token \\\n/,
  );
  assert.doesNotMatch(command, /SERVICE_API_KEY/);
  const file = join(tempDir(t), 'token');
  const stored = storeTokenCommand("ve_a.b'c").replace(' sudo ', ' ').replace(tokenFile, file);
  execFileSync('sh', ['-c', stored]);
  assert.equal(readFileSync(file, 'utf8'), "ve_a.b'c\n");
  assert.equal(statSync(file).mode & 0o777, 0o600);
});
