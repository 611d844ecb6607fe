/** Unusual option values: used literally if that is safe, otherwise rejected with the name of the option. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { assertPair, machine } from '../harness/client/installer.ts';
import { clientVault } from '../harness/client/vault.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { inTurnOfShells } from './places.ts';

const refused: readonly [string, readonly string[], RegExp][] = [
  ['the output name ..', ['--file', 'chain.crt=..'], /"\.\." is not a plain file name/],
  ['the output name .', ['--file', 'chain.crt=.'], /not a plain file name/],
  ['an output with a slash', ['--file', 'chain.crt=a/b'], /"a\/b" is not a plain file name/],
  ['an empty output', ['--file', 'chain.crt='], /is empty/],
  ['an output with a line break', ['--file', 'chain.crt=a\nb'], /line breaks/],
  ['a reserved name', ['--file', 'chain.crt=.vault-x'], /are reserved/],
  ['the same output twice', ['--file', 'chain.crt=tls.crt'], /two files have the name/],
  ['outputs that differ by case', ['--file', 'chain.crt=TLS.crt'], /two files have the name/],
  ['an unknown artifact', ['--file', 'bundle.crt'], /unknown artifact "bundle\.crt"/],
  ['a destination with a line break', ['--destination', '/tmp/a\nb'], /line breaks/],
  ['a destination with ..', ['--destination', '/tmp/../etc'], /must not contain "\.\."/],
  ['the root as destination', ['--destination', '//./'], /must not be the root directory/],
  ['an empty destination', ['--destination', ''], /must not be empty/],
  ['the certificate *', ['--certificate', '*'], /is not a valid certificate name/],
  ['a certificate with a slash', ['--certificate', 'a/../b'], /is not a valid certificate name/],
  ['a certificate with a leading dot', ['--certificate=..'], /is not a valid certificate name/],
  ['an unknown option', ['--resume'], /unknown option "--resume"/],
  ['an argument that is not an option', ['web'], /unknown option "web"/],
  ['an option without its value', ['--owner'], /--owner needs a value/],
  ['an invalid mode', ['--mode', '0888'], /not an octal mode/],
  ['an invalid pin', ['--pin', 'sha256//abc'], /must be sha256/],
  [
    'an invalid second pin',
    ['--pin', `sha256//${'A'.repeat(43)}=,sha256//x`],
    /--pin: "sha256\/\/x" must be sha256/,
  ],
  ['an invalid schedule', ['--schedule', '61 * * * *'], /"61" is not between 0 and 59/],
  ['a schedule with a command', ['--schedule', '* * * * * rm'], /expected 5 fields, found 6/],
  ['plain http', ['--server', 'http://vault.example'], /would send the API key/],
  ['a name that looks like loopback', ['--server', 'http://127.0.0.1.example'], /would send the API key/],
  ['a server with credentials', ['--server', 'https://me:secret@vault.example'], /is not a URL/],
  ['a server with a query', ['--server', 'https://vault.example/?x'], /is not a URL/],
  ['--verify without a port', ['--verify', 'localhost'], /is not HOST:PORT/],
];

for (const [name, args, message] of refused) {
  test(`${name} is rejected, and nothing is left behind`, needs('curl'), async (t) => {
    const client = machine(t);
    const files = ['--file', 'fullchain.crt=tls.crt', '--destination', client.destination];
    const usual = ['--server', 'https://127.0.0.1:1', '--certificate', 'web', ...files];
    const outcome = await client.run([...usual, ...args], { environment: { SERVICE_API_KEY: 'vk_a.b' } });
    assert.equal(outcome.code, 2, outcome.stderr);
    assert.match(outcome.stderr, message);
    assert.deepEqual(readdirSync(client.home), ['bin', 'syslog']);
  });
}

inTurnOfShells('spaces, quotes and dollar signs are used literally', async (t, shell) => {
  const vault = await clientVault(t, { certificates: ['*.example.test'] });
  const client = machine(t, { shell });
  const destination = join(client.home, `it's "a" $HOME \`id\` \\dir * `);
  const installed = await vault.install(client, [
    '--certificate=*.example.test',
    `--destination=${destination}`,
    '--file=chain.crt=- a=b;$(id) "c".crt',
    '--reload-command',
    `printf '%s' "$HOME 'x'" >"${client.home}/reloaded"`,
  ]);
  assert.equal(installed.code, 0, installed.stderr);
  assert.deepEqual(readdirSync(destination), ['- a=b;$(id) "c".crt', 'tls.crt', 'tls.key']);
  assert.equal(readFileSync(join(client.home, 'reloaded'), 'utf8'), `${client.home} 'x'`);
  assert.match(client.jobs()[0] ?? '', /^_\.example\.test-\d+$/);
  const status = await client.run(['--status', '--destination', destination], { shell });
  assert.equal(status.code, 0, status.stderr);
  assert(status.stdout.includes(`  destination  ${destination}\n`));
  assert.equal((await client.run(['--run'], { script: client.copy() })).stderr, '');
});

test(
  'both names of an artifact, and one artifact under two names, can be installed together',
  needs('curl'),
  async (t) => {
    const vault = await clientVault(t);
    const client = machine(t);
    const names = [
      'certificate.crt',
      'chain.crt',
      'fullchain.crt',
      'private.key',
      'fullchain.pem',
      'private-key.pem',
    ];
    const more = [...names, 'fullchain.crt=copy.pem'].flatMap((name) => ['--file', name]);
    assert.equal((await vault.install(client, more)).code, 0);
    assert.deepEqual(readdirSync(client.destination), [...names, 'copy.pem', 'tls.crt', 'tls.key'].sort());
    assert.equal(client.file('fullchain.pem'), client.file('certificate.crt') + client.file('chain.crt'));
    assertPair(client);
  },
);

test('two jobs cannot write the same file', needs('curl'), async (t) => {
  const vault = await clientVault(t, { certificates: ['web', 'mail'] });
  const client = machine(t);
  assert.equal((await vault.install(client)).code, 0);
  const second = await vault.install(client, ['--certificate', 'mail']);
  assert.equal(second.code, 1);
  assert.match(second.stderr, /installs a file "tls\.crt"/);
  assert.equal(client.jobs().length, 1);
});

test('without curl, GNU wget, openssl and nc the script says what to install', needs('dash'), async (t) => {
  const client = machine(t, { tool: 'nc' });
  client.fake('openssl', 'exit 127');
  const args = ['--server', 'https://vault.example', '--certificate', 'web', '--file', 'private.key'];
  const outcome = await client.run([...args, '--destination', client.destination]);
  assert.equal(outcome.code, 1);
  assert.match(outcome.stderr, /install curl, GNU wget or openssl \(BusyBox wget would show the API key/);
  assert.equal(existsSync(client.destination), false);
});

test('a wget that is not GNU Wget 1 is never used for a download', needs('busybox'), async (t) => {
  const vault = await clientVault(t);
  // Wget2 follows redirects despite its options; BusyBox wget takes headers only from its arguments.
  for (const name of ['GNU Wget2 2.1.0 - multithreaded', 'BusyBox v1.36.1']) {
    const client = machine(t, { tool: 'nc' });
    client.fake('wget', `case $1 in --version) echo '${name}' ;; *) : >"${client.home}/asked" ;; esac`);
    assert.equal((await vault.install(client)).code, 0);
    assert.equal(existsSync(join(client.home, 'asked')), false);
  }
});
