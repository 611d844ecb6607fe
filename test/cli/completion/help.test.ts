/** What help shows beside the usage: for every command a line that works as it stands. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { readArguments } from '../../../src/cli/terminal/arguments.ts';
import { makeChain } from '../../harness/ca/openssl-chain.ts';
import { allCommands, type KnownCommand } from '../../harness/command-tree.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { fromExecutable, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

let commands: readonly KnownCommand[] = [];

before(async () => {
  commands = await allCommands();
});

/** The words of a line as a shell would see them, up to the first redirection or pipe. */
function shellWords(line: string): string[] {
  const parts = line.match(/[|<>]|(?:"[^"]*"|'[^']*'|[^\s|<>"'])+/g) ?? [];
  const end = parts.findIndex((part) => /^[|<>]$/.test(part));
  return parts.slice(0, end === -1 ? undefined : end).map((part) => part.replace(/["']/g, ''));
}

test('every command has examples that parse with its options', () => {
  for (const { words, specs, examples } of commands) {
    const name = words.join(' ');
    assert.ok(
      examples.length > 0,
      `vault ${name}: give its definition examples: [{ does, line }], the line as it is typed`,
    );
    for (const { does, line } of examples) {
      assert.match(does, /^[A-Z].*[^.:]$/, `${name}: what an example does is a phrase`);
      const [program, ...rest] = shellWords(line);
      assert.deepEqual([program, ...rest.slice(0, words.length)], ['vault', ...words], line);
      assert.doesNotThrow(() => readArguments(specs, rest.slice(words.length), `vault ${name}`), line);
    }
  }
});

test('vault --help lists every command once', async () => {
  const { stdout } = await vault([]);
  assert.equal(stdout, '');
  const help = (await vault(['--help'])).stdout;
  const shown = [...help.matchAll(/^ {2}(\S+) {2,}\S/gm)].map(([, name]) => name);
  assert.deepEqual(shown.toSorted(), [...new Set(commands.map(({ words }) => words[0]))].toSorted());
  assert.equal((await vault([])).stderr, help);
});

test('--help shows the examples below the options, and "help" before a command is the same', async () => {
  const { code, stdout, stderr } = await vault(['api-key', 'revoke', '--help']);
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  const examples =
    '\nEXAMPLES\n\n  Revoke a key; its next request is refused:\n    vault api-key revoke www\n';
  assert.ok(stdout.includes(examples), stdout);
  assert.ok(stdout.endsWith('see "vault help options".\n'), stdout);
  assert.doesNotMatch(stdout, /--data-dir/);
  assert.match((await vault(['help', 'options'])).stdout, /^ {2}--data-dir=<DIR> /m);
  assert.deepEqual(await vault(['help', 'api-key', 'revoke']), { code, stdout, stderr });
  assert.deepEqual(await vault(['help']), await vault(['--help']));
  assert.deepEqual(await vault(['help', 'nothing']), await vault(['nothing']));
});

/**
 * Examples that need more than a vault: a CA, a name server, a terminal, another machine, a database server, a client
 * that reports, a TLS server, or the system's folders.
 */
const elsewhere = [
  /^vault (serve|demo|doctor|login|logout|notification|master-key (rotate|remove|seal|unseal))/,
  /letsencrypt/,
  /^vault inspect www/,
  /^vault ca import --chain/,
  /--name (shop|inside|zerossl)/,
  /^vault acme-account (rollover|deactivate|delete)/,
  /^vault dns-provider test/,
  /^vault fleet forget/,
  /^vault endpoint (list|check|scan|adopt|remove-scan)/,
  /^vault deploy-target run/,
  /^vault replace/,
  /^vault admin (create|reset-password) --name \w+$/,
  /^vault (notification|oidc) test/,
  /^vault database reopen|postgres:/,
  / \| (ssh|less|man)|\/usr\/|\/etc\//,
];

/**
 * What comes first, so that the rest finds what it names, and what comes last. The others stand between, in their
 * order.
 */
const first = [
  'certificate create',
  'certificate import',
  'api-key create',
  'enrollment create',
  'acme-client create',
  'admin setup-link',
  'issuer profile add',
  'admin create',
  'dns-provider add',
  ...['notification add webhook', 'notification add email', 'notification add exec'],
];
const last = [
  ...[
    'export',
    'apply',
    'api-key revoke',
    'api-key delete',
    'enrollment revoke',
    'enrollment delete',
    'acme-client revoke',
    'acme-client delete',
    'certificate delete',
    'certificate undelete',
    'certificate purge',
    'dns-provider remove',
    'admin delete',
  ],
  'notification remove',
  ...['backup', 'restore'],
];

function rank({ words }: KnownCommand): number {
  const name = words.join(' ');
  if (first.includes(name)) return first.indexOf(name) - first.length;
  return last.indexOf(name) + 1;
}

test('the examples in the help run as written, in sequence, on a new vault', needs('openssl'), (t) => {
  const dir = tempDir(t);
  const bin = join(dir, 'bin');
  mkdirSync(bin);
  symlinkSync(fromExecutable[0], join(bin, 'vault'));
  const { leaf, fullchainPem } = makeChain(dir);
  const hostKey = `ssh-ed25519 ${Buffer.from('\0\0\0\x0bssh-ed25519made-up-for-this-test').toString('base64')}`;
  const files = {
    'fullchain.pem': fullchainPem,
    'privkey.pem': leaf.keyPem,
    'password.txt': 'four words nobody wrote\n',
    'passphrase.txt': 'five words nobody ever wrote\n',
    'smtp-password.txt': 'made-up-for-this-test\n',
    'gandi.yaml': 'environment:\n  LEXICON_GANDI_AUTH_TOKEN: made-up-for-this-test\n',
    'web1.yaml': `host: web1.example.test\nuser: deploy\nhost_key: ${hostKey}\npassword: made-up-for-this-test\nfiles: { combined: /tls.pem }\n`,
    'cluster.yaml': 'server: https://cluster.example.test\ntoken: made-up-for-this-test\n',
    'cloudflare.yaml': 'api_token: made-up-for-this-test-0123456789abcdef\n',
  };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(dir, name), content);
  const pack = ['pkcs12', '-export', '-in', 'fullchain.pem', '-inkey', 'privkey.pem', '-out', 'mail.p12'];
  execFileSync('openssl', [...pack, '-passout', 'file:password.txt'], { cwd: dir });
  const request = ['req', '-new', '-key', 'privkey.pem', '-subj', '/CN=db.example.test', '-out', 'db.csr'];
  execFileSync('openssl', [...request, '-addext', 'subjectAltName=DNS:db.example.test'], { cwd: dir });
  const lines = [...commands]
    .sort((one, other) => rank(one) - rank(other))
    .flatMap(({ examples }) => examples.map(({ line }) => line))
    .filter((line) => !elsewhere.some((pattern) => pattern.test(line)));
  assert.ok(lines.length > 25, `${lines.length}`);
  const env = { ...process.env, PATH: `${bin}:${process.env.PATH}`, VAULT_DATA_DIR: join(dir, 'data') };
  for (const line of lines) {
    execFileSync('sh', ['-c', line], { cwd: dir, env, stdio: ['ignore', 'pipe', 'pipe'] });
  }
});
