/** `vault certificate create`, `list`, `show` and `delete`, by themselves and beside a running server. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { keyTypes } from '../../../../src/base/key-type.ts';
import type { CertificateView } from '../../../../src/domain/certificates/certificate-views.ts';
import { vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const day = 86_400_000;
const dir = mkdtempSync(join(tmpdir(), 'vault-certificate-'));
after(() => rmSync(dir, { recursive: true }));

const certificate = (command: string, ...args: string[]) =>
  vault(['certificate', command, '--data-dir', dir, ...args]);

async function list(): Promise<CertificateView[]> {
  const { code, stdout, stderr } = await certificate('list', '--json');
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  return JSON.parse(stdout) as CertificateView[];
}

before(async () => {
  assert.equal((await certificate('create', '--name=web', '--domain=www.example.com')).code, 0);
});

test('create supports every key type and prints the version and its expiry', async () => {
  await Promise.all(
    keyTypes.map(async (type) => {
      const args = ['--name', `key-${type}`, '--domain', `${type}.test`, '--key-type', type];
      const { code, stdout, stderr } = await certificate('create', ...args);
      assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
      assert.match(
        stdout,
        new RegExp(`^key-${type}: version 1, valid until \\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ\\n$`),
      );
    }),
  );
  const made = (await list()).filter(({ name }) => name.startsWith('key-'));
  assert.deepEqual(
    made.map(({ name, key_type, current_version }) => [name, key_type, current_version?.key_type]),
    [...keyTypes].sort().map((type) => [`key-${type}`, type, type]),
  );
});

test('domains, wildcards and IP addresses are normalized and deduplicated', async () => {
  const domains = [
    'WWW.Example.COM',
    '*.example.com',
    '192.0.2.1',
    '2001:0DB8:0:0::1',
    'bücher.example',
    'www.example.com.',
  ];
  const args = domains.flatMap((domain) => ['--domain', domain]);
  assert.equal((await certificate('create', '--name', '*.example.com', ...args, '--lifetime=6d')).code, 0);
  const [view] = (await list()).filter(({ name }) => name === '*.example.com');
  const expected = ['www.example.com', '*.example.com', '192.0.2.1', '2001:db8::1', 'xn--bcher-kva.example'];
  assert.deepEqual(view?.domains, expected);
  const version = view?.current_version ?? assert.fail();
  assert.deepEqual([...version.domains].sort(), [...expected].sort());
  assert.equal(Date.parse(version.not_after) - Date.parse(version.not_before), 6 * day);
});

test('the list as JSON has exactly the documented fields', async () => {
  const view = (await list()).find(({ name }) => name === 'web') ?? assert.fail();
  assert.deepEqual(Object.keys(view), [
    'name',
    'domains',
    'uris',
    'emails',
    'labels',
    'key_type',
    'issuer',
    'owner',
    'status',
    'auto_renew',
    'key_holder',
    'created_at',
    'current_version',
    'renewal',
    'artifacts',
  ]);
  const {
    domains,
    key_type,
    issuer,
    status,
    auto_renew,
    current_version: version,
    renewal,
    artifacts,
  } = view;
  assert.deepEqual(
    { domains, key_type, issuer, status, auto_renew },
    {
      domains: ['www.example.com'],
      key_type: 'ec256',
      issuer: 'local-ca',
      status: 'valid',
      auto_renew: true,
    },
  );
  assert.deepEqual([version?.version, version?.source, version?.current], [1, 'local-ca', true]);
  assert.match(version?.fingerprint_sha256 ?? '', /^[0-9A-Fa-f:]{64,95}$/);
  assert.ok(Date.parse(renewal.next_at ?? '') > Date.now());
  assert.deepEqual(
    artifacts.map(({ file, url }) => [file, url]),
    ['certificate.crt', 'chain.crt', 'fullchain.crt', 'private.key'].map((file) => [
      file,
      `/api/v1/certificates/web/${file}`,
    ]),
  );
});

test('list prints a table and show prints details; show --json matches the list entry', async () => {
  const [{ stdout }, { stdout: shown }, { stdout: shownJson }, views] = await Promise.all([
    certificate('list'),
    certificate('show', '--name', 'web'),
    certificate('show', '--name', 'web', '--json'),
    list(),
  ]);
  const [header = '', ...rows] = stdout.trimEnd().split('\n');
  assert.match(header, /^NAME +STATUS +EXPIRES IN +ISSUER +VERSION +DOMAINS$/);
  const row = rows.find((line) => line.startsWith('web ')) ?? assert.fail(stdout);
  assert.match(row, /^web +valid +89 days +local-ca +1 +www\.example\.com$/);
  assert.equal(row.indexOf('valid'), header.indexOf('STATUS'));
  const view = views.find(({ name }) => name === 'web') ?? assert.fail();
  assert.match(
    shown,
    /^Name +web\nStatus +valid\nDomains +www\.example\.com\nKey type +ec256\nIssuer +local-ca\nPublic key pin {2}sha256\/\/[\w+/]{43}=\n/,
  );
  assert.ok(shown.includes(`\nRenewal         ${view.renewal.next_at}\n`), shown);
  assert.match(
    shown,
    /\n\nVERSION +NOT BEFORE +NOT AFTER +SOURCE +SHA-256 FINGERPRINT\n1 \(current\) +\S+Z +\S+Z +local-ca +\S+\n$/,
  );
  const { public_key_pin, next_public_key_pin, usage, subject, csr, ...same } = JSON.parse(
    shownJson,
  ) as Record<string, unknown>;
  assert.deepEqual(same, view);
  assert.deepEqual([usage, subject, view.uris, view.emails], ['both', [], [], []]);
  assert.match(String(public_key_pin), /^sha256\/\/[\w+/]{43}=$/);
  assert.deepEqual([next_public_key_pin, csr], [null, null]);
  for (const text of [stdout, shown, shownJson]) assert.doesNotMatch(text, /PRIVATE KEY-|sealed/);
});

test('an error is printed on stderr alone and changes nothing, and creates no vault', async (t) => {
  const before = await list();
  const fresh = join(tempDir(t), 'fresh');
  const web = ['--name=new', '--domain=a.test'];
  const cases: [code: 1 | 2, args: string[], stderr: RegExp][] = [
    [
      1,
      ['--name=*', '--domain=a b', '--domain=-x.test', '--key-type=rsa1024', '--lifetime=4m'],
      /^vault: "\*" is not a name: .*\nvault: "a b" is not a domain: .*\nvault: "-x\.test" is not a domain: .*\nvault: "rsa1024" is not a key type: use one of ec256, .*\nvault: "4m" is not a lifetime: .*\n$/,
    ],
    [
      1,
      [
        '--name=.x',
        '--domain=http://a.test',
        '--domain=fe80::1%eth0',
        '--domain=*',
        '--domain=',
        '--lifetime=11y',
      ],
      /^vault: ".x" is not a name: .*\n(vault: ".*" is not a domain: .*\n){4}vault: "11y" is not a lifetime: .*\n$/,
    ],
    [2, ['--name=new'], /^vault: --domain is missing\n {2}Try: vault certificate create --help\n$/],
  ];
  await Promise.all(
    cases.map(async ([expected, args, message]) => {
      const { code, stdout, stderr } = await vault(['certificate', 'create', '--data-dir', fresh, ...args]);
      assert.deepEqual({ code, stdout }, { code: expected, stdout: '' }, args.join(' '));
      assert.match(stderr, message);
    }),
  );
  assert.equal(existsSync(fresh), false);
  const issuer = await certificate('create', ...web, '--issuer=digicert');
  assert.deepEqual([issuer.code, issuer.stdout], [1, '']);
  assert.match(issuer.stderr, /^vault: .*no.* issuer.*\n {2}Use one of: local-ca\.\n$/);
  assert.deepEqual(await certificate('create', '--name=web', '--domain=other.test'), {
    code: 1,
    stdout: '',
    stderr:
      'vault: Certificate "web" already exists.\n' +
      '  Choose another name, or change it with "vault certificate update --name web".\n',
  });
  for (const command of ['show', 'delete']) {
    const { code, stdout, stderr } = await certificate(command, '--name', 'wob');
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' });
    assert.equal(stderr, 'vault: Unknown certificate "wob".\n  Did you mean "web"?\n');
  }
  assert.deepEqual(await list(), before);
});
