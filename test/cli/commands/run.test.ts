/** What every command has in common: help, exit codes, and the form of what goes wrong. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { realWorld } from '../../../src/base/world.ts';
import { run } from '../../../src/cli/commands/run.ts';
import { fromExecutable, vault } from '../../harness/processes/vault-process.ts';
import { tempDir } from '../../harness/temp-dir.ts';

const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
  version: string;
};

const common = ['--data-dir', '--config', '--master-key-file'];
const options: Readonly<Record<string, readonly string[]>> = {
  serve: [
    ...['--listen', '--public-url', '--insecure-http', '--log-level'],
    ...['--acme-http-listen', '--acme-tls-listen', '--resolver', '--acme-drafts'],
  ],
  'api-key create': ['--name', '--scope', '--certificate', '--expires-at'],
  'enrollment create': [
    ...['--name', '--certificate', '--certificate-label', '--uses', '--expires-at', '--allow-ip'],
    ...['--bind-address', '--key-expires-at', '--scope', '--label', '--json'],
  ],
  'enrollment revoke': ['--id', '--with-keys'],
  'acme-client create': [
    ...['--name', '--domain', '--issuer', '--profile', '--allow-ip', '--expires-at', '--rate'],
    ...['--validate', '--json'],
  ],
  apply: ['--dry-run', '--exit-code', '--prune', '--yes', '--key-dir', '--json', '--schema'],
  export: [],
  completion: ['--names'],
  'api-key list': [],
  'api-key revoke': ['--id'],
  'api-key delete': ['--id'],
  'certificate create': [
    ...['--name', '--domain', '--issuer', '--key-type', '--lifetime', '--reuse-key'],
    ...['--fallback-issuer', '--profile', '--challenge', '--wait', '--resolver', '--acme-drafts'],
  ],
  'certificate import': ['--name', '--fullchain', '--private-key', '--pkcs12', '--password-file'],
  'certificate list': ['--json'],
  'certificate show': ['--name', '--json'],
  'certificate renew': ['--name', '--all', '--expiring', '--wait', '--resolver', '--acme-drafts', '--yes'],
  'certificate update': [
    ...['--name', '--domain', '--issuer', '--fallback-issuer', '--key-type', '--profile', '--challenge'],
    ...[
      '--reuse-key',
      '--no-reuse-key',
      '--rotate-key',
      '--no-rotate-key',
      '--auto-renew',
      '--no-auto-renew',
      '--disable',
      '--enable',
      '--wait',
    ],
  ],
  'certificate revoke': ['--name', '--version', '--reason'],
  'certificate delete': ['--name', '--force'],
  'audit list': [
    '--since',
    '--until',
    '--actor',
    '--action',
    '--certificate',
    '--resource',
    '--limit',
    '--json',
  ],
  'audit export': ['--since', '--until', '--actor', '--action', '--certificate', '--format', '--output'],
  'audit tail': ['--follow', '--lines', '--json', '--action'],
  'audit verify': ['--checkpoint', '--file', '--public-key', '--json'],
  'audit checkpoint': ['--new-key'],
  'audit public-key': [],
  'renewals list': ['--failed', '--name', '--limit', '--json'],
  'fleet status': ['--state', '--label', '--json'],
  'endpoint add': [
    ...['--address', '--certificate', '--server-name', '--starttls', '--trust', '--ca', '--interval'],
  ],
  'endpoint list': ['--certificate', '--state', '--label', '--json'],
  'endpoint check': ['--address', '--certificate', '--endpoint-allow', '--endpoint-forbid', '--json'],
  'endpoint update': ['--address', '--server-name', '--certificate', '--starttls', '--trust', '--interval'],
  'endpoint remove': ['--address', '--server-name'],
  'endpoint suggest': ['--certificate', '--json'],
  'endpoint scan': [
    ...['--network', '--port', '--rate', '--every', '--endpoint-allow', '--endpoint-forbid', '--json'],
  ],
  'endpoint scans': ['--json'],
  'endpoint remove-scan': ['--id'],
  'endpoint found': ['--all', '--json'],
  'endpoint adopt': ['--address', '--issue', '--issuer', '--private-key', '--name'],
  'deploy-target add': ['--name', '--type', '--certificate', '--secret-file'],
  'deploy-target list': ['--json'],
  'deploy-target show': ['--name', '--json'],
  'deploy-target update': ['--name', '--add-certificate', '--remove-certificate', '--secret-file'],
  'deploy-target run': ['--name', '--certificate', '--allow-outbound', '--json'],
  'deploy-target remove': ['--name'],
  'replace start': [
    ...['--all-of-issuer', '--label', '--key-compromised', '--reason', '--deadline'],
    ...['--dry-run', '--wait', '--yes', '--json'],
  ],
  'replace status': ['--wait', '--json'],
  'replace cancel': [],
  'issuer add': [
    ...['--name', '--directory', '--email', '--eab-kid', '--eab-hmac-key-file', '--ca-file', '--profile'],
    ...['--preferred-chain', '--accept-terms'],
  ],
  'issuer update': ['--name', '--directory', '--email', '--eab-kid', '--ca-file', '--accept-terms'],
  'issuer list': ['--json'],
  'issuer remove': ['--name'],
  'acme-account list': ['--json'],
  'acme-account rollover': ['--id'],
  'acme-account deactivate': ['--id'],
  'acme-account delete': ['--id'],
  'dns-provider add': ['--name', '--type', '--zone', '--secret-file'],
  'dns-provider list': ['--json'],
  'dns-provider test': ['--name', '--domain', '--resolver'],
  'dns-provider remove': ['--name'],
};
const groups: Readonly<Record<string, readonly string[]>> = {
  '': [
    ...['serve', 'certificate', 'renewals', 'api-key', 'issuer', 'acme-account', 'dns-provider'],
    ...['audit', 'systemd-unit', 'licenses', 'version', 'apply', 'export', 'completion', 'man', 'doctor'],
  ],
  'api-key': ['create', 'list', 'revoke', 'delete'],
  enrollment: ['create', 'list', 'show', 'revoke', 'delete'],
  'acme-client': ['create', 'list', 'show', 'update', 'rotate', 'revoke', 'delete'],
  certificate: ['create', 'import', 'list', 'show', 'renew', 'update', 'revoke', 'delete'],
  renewals: ['list'],
  fleet: ['status'],
  endpoint: ['add', 'list', 'check', 'update', 'remove', 'suggest', 'scan', 'scans', 'found', 'adopt'],
  'deploy-target': ['add', 'list', 'show', 'update', 'run', 'remove', 'types'],
  replace: ['start', 'status', 'cancel'],
  audit: ['list', 'export', 'tail', 'checkpoint', 'verify', 'public-key'],
  issuer: ['add', 'list', 'update', 'remove'],
  'acme-account': ['list', 'rollover', 'deactivate', 'delete'],
  'dns-provider': ['add', 'list', 'test', 'remove'],
};

before(async () => {
  // Fills the cache, so that what runs at the same time below does not compile the same sources.
  await vault(['--version']);
});

const words = (command: string) => command.split(' ').filter((word) => word !== '');

test('--help of every command lists its options on stdout, without colors, with exit code 0', async () => {
  await Promise.all(
    Object.entries(options).map(async ([command, own]) => {
      const { code, stdout, stderr } = await vault([...words(command), '--help']);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, command);
      assert.match(stdout, new RegExp(`^USAGE vault ${command}( |$)`, 'm'));
      for (const option of own) assert.match(stdout, new RegExp(`^ +${option}[= ]`, 'm'), command);
      for (const option of common) assert.doesNotMatch(stdout, new RegExp(`^ +${option}[= ]`, 'm'), command);
      assert.ok(!stdout.includes('\u001b'), stdout);
    }),
  );
});

test('--help is the same with NO_COLOR, and no line ends with a space', async () => {
  for (const command of ['export', 'completion']) {
    const plain = await vault([command, '--help']);
    const uncolored = await vault([command, '--help'], { environment: { NO_COLOR: '1' } });
    assert.equal(uncolored.stdout, plain.stdout);
    assert.doesNotMatch(plain.stdout, / $/m);
  }
});

test('--help of a command group lists its commands', async () => {
  await Promise.all(
    Object.entries(groups).map(async ([group, commands]) => {
      const { code, stdout, stderr } = await vault([...words(group), '--help']);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' }, group);
      for (const command of commands) assert.match(stdout, new RegExp(`^ +${command} `, 'm'), group);
      assert.ok(!stdout.includes('\u001b'), stdout);
    }),
  );
});

test('--help takes precedence over errors, and changes nothing', async (t) => {
  const dir = join(tempDir(t), 'data');
  const { code, stdout } = await vault(['api-key', 'create', '--nam', 'x', '--data-dir', dir, '-h']);
  assert.equal(code, 0);
  assert.match(stdout, /vault api-key create/);
  assert.equal(existsSync(dir), false);
});

test('--version prints the version of package.json, and only it', async () => {
  assert.deepEqual(await vault(['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
});

test('a command that is missing, unknown or badly written ends with exit code 2 and a hint', async () => {
  const { stdout: usage } = await vault(['--help']);
  const all = [...usage.matchAll(/^ {2}(\S+) {2}/gm)].map(([, name]) => name).join(', ');
  const cases: [args: string[], stderr: string][] = [
    [[], usage],
    [
      ['api-key'],
      'vault: missing command; use one of create, list, update, rotate, revoke, delete\n  Try: vault api-key --help\n',
    ],
    [['serv'], 'vault: unknown command "serv"\n  Did you mean "serve"?\n'],
    [['toString'], `vault: unknown command "toString"\n  Commands are ${all}.\n`],
    [
      ['--data-dir', 'x', 'serve'],
      'vault: option --data-dir precedes the command\n  Write options after the command.\n',
    ],
    [['certificate', 'rm', '--force'], 'vault: --name is missing\n  Try: vault certificate delete --help\n'],
    [['certificate', 'show'], 'vault: --name is missing\n  Try: vault certificate show --help\n'],
  ];
  await Promise.all(
    cases.map(async ([args, stderr]) => {
      assert.deepEqual(await vault(args), { code: 2, stdout: '', stderr }, args.join(' '));
    }),
  );
});

test('invalid values end with exit code 1 and one line per error', async (t) => {
  const args = ['--name', '.x', '--scope', 'all', '--certificate', '.y', '--expires-at', 'soon'];
  const { code, stdout, stderr } = await vault([
    'api-key',
    'create',
    ...args,
    '--data-dir',
    join(tempDir(t), 'data'),
  ]);
  assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
  const lines = stderr.trimEnd().split('\n');
  assert.equal(lines.length, 3, stderr);
  for (const line of lines) assert.match(line, /^vault: "(all|\.y|soon)" is not an? \S/);
});

test('errors do not print control characters of their input', async (t) => {
  const evil = '\u001b]0;owned\u0007\u001b]52;c;ZXZpbA==\u0007\u009b2J\u202e\r\nvault: all is well';
  const data = ['--data-dir', join(tempDir(t), 'data')];
  for (const args of [
    [evil],
    ['certificate', 'show', '--name', evil, ...data],
    ['inspect', `${tempDir(t)}/${evil}`],
    ['restore', `./${evil}`, '--check', ...data],
    ['api-key', 'create', `--${evil}`],
  ]) {
    const { code, stdout, stderr } = await vault(args);
    assert.ok(code === 1 || code === 2, stderr);
    assert.doesNotMatch(stdout + stderr, /(?!\n)[\p{Cc}\u202e]/u, args.join(' '));
    assert.doesNotMatch(stderr, /^vault: all is well/m);
  }
});

test('--help ends with exit code 0 when the reader closes the pipe early', async () => {
  const [program, ...first] = fromExecutable;
  const child = spawn(program, [...first, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
  child.stdout.destroy();
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const [code] = await once(child, 'close');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
});

test('an internal error is reported as a bug; its stack is printed only with CERTVAULT_DEBUG or VAULT_DEBUG', async () => {
  const ending = async (debug: Record<string, string>) => {
    let stderr = '';
    const write = (text: string) => {
      stderr += text;
    };
    const stream = { write } as unknown as NodeJS.WriteStream;
    const environment = {
      ...debug,
      get VAULT_DATA_DIR(): string {
        throw new TypeError('the test breaks it');
      },
    };
    const terminal = {
      world: realWorld,
      environment,
      stdin: process.stdin,
      stdout: stream,
      stderr: stream,
      version,
      executable: process.execPath,
    };
    return { code: await run(['api-key', 'list'], terminal), stderr };
  };
  const message = 'vault: internal error: the test breaks it\n';
  const quiet = await ending({});
  assert.equal(quiet.code, 1);
  assert.equal(
    quiet.stderr,
    `${message}  This is a bug. Run the command again with CERTVAULT_DEBUG=1 and report the output.\n`,
  );
  for (const variable of ['CERTVAULT_DEBUG', 'VAULT_DEBUG']) {
    assert.match((await ending({ [variable]: '1' })).stderr, /TypeError: the test breaks it\n +at /);
  }
});
