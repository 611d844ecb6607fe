/**
 * `vault apply`: what is shown, made, changed and removed, that a second run does nothing, and that no secret is said.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { makeChain } from '../../../harness/ca/openssl-chain.ts';
import { scriptedAcme } from '../../../harness/ca/scripted-acme.ts';
import { nameKeyAlike } from '../../../harness/key-names.ts';
import { type CommandLine, commandLine } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { fromExecutable, serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const token = 'made-up-token-of-this-test-0123456789';

const first = `version: 1
dns_providers:
  cloudflare: {type: cloudflare, zones: [example.com], secret: {file: cloudflare.yaml}}
certificates:
  web:
    domains: [www.example.test, example.test]
  "*.example.com":
    domains: ["*.example.com"]
    key_type: ec384
    lifetime: 30d
    auto_renew: false
api_keys:
  www:
    scopes: [private_keys:read, certificates:read]
    certificates: [web]
    secret_file: www.key
`;

/** A vault to which `first` was applied, and the folder of its files. */
async function applied(t: Parameters<typeof commandLine>[0], text = first) {
  const line = commandLine(t);
  line.file(`api_token: ${token}\n`, 'cloudflare.yaml');
  const path = line.file(text, 'desired.yaml');
  const outcome = await line.done('apply', '-f', path);
  return { ...line, path, folder: dirname(path), outcome };
}

type Key = { id: number; name: string; scopes: string[]; certificates: string[]; state: string };

const keysOf = async ({ done }: CommandLine) => JSON.parse((await done('api-key', 'list')).stdout) as Key[];

test('new objects are printed and created, an API key is written to its file, and a second run does nothing', async (t) => {
  const line = await applied(t);
  assert.equal(
    line.outcome.stdout,
    `+ dns-provider cloudflare
    type: cloudflare
    zones: [example.com]
    secret: (secret)
+ certificate web
    domains: [www.example.test, example.test]
    issuer: local-ca
    key_type: ec256
+ certificate *.example.com
    domains: [*.example.com]
    issuer: local-ca
    key_type: ec384
    auto_renew: false
    lifetime: 30d
+ api-key www
    scopes: [certificates:read, private_keys:read]
    certificates: [web]

4 to create, 0 to change, 0 to remove
`,
  );
  const secret = join(line.folder, 'www.key');
  assert.match(line.outcome.stderr, new RegExp(`Wrote the secret of API key www to ${secret}\\.\n`));
  assert.equal(statSync(secret).mode & 0o777, 0o600);
  const raw = readFileSync(secret, 'utf8');
  assert.match(raw, /^vk_[\w-]{12}\.[\w-]{43}\n$/);
  assert.ok(!`${line.outcome.stdout}${line.outcome.stderr}`.includes(raw.trim()));
  const again = await line.done('apply', '-f', line.path);
  assert.deepEqual(again, { code: 0, stdout: 'No changes.\n', stderr: '' });
  const { url } = await serve(t, line.data);
  const got = await fetch(`${url}/api/v1/certificates/web/private.key`, {
    headers: { authorization: `Bearer ${raw.trim()}` },
  });
  assert.equal(got.status, 200);
});

test('changed objects are updated, an API key keeps its secret, and a running server applies its new rights', async (t) => {
  const line = await applied(t);
  const { url } = await serve(t, line.data);
  const raw = readFileSync(join(line.folder, 'www.key'), 'utf8').trim();
  const status = async (path: string) =>
    (await fetch(`${url}/api/v1/certificates/${path}`, { headers: { authorization: `Bearer ${raw}` } }))
      .status;
  assert.deepEqual([await status('web'), await status('*.example.com')], [200, 403]);
  line.file(
    first
      .replace('[www.example.test, example.test]', '[www.example.test]')
      .replace('    auto_renew: false\n', '')
      .replace('certificates: [web]', 'certificates: ["*.example.com"]'),
    'desired.yaml',
  );
  const { stdout, stderr } = await line.done('apply', '-f', line.path);
  assert.equal(
    stdout,
    `~ certificate web: renews it immediately
    domains: [www.example.test, example.test] → [www.example.test]
~ certificate *.example.com
    auto_renew: false → true
~ api-key www (id 1)
    certificates: [web] → [*.example.com]

0 to create, 3 to change, 0 to remove
`,
  );
  assert.equal(stderr, `Applied ${line.path}.\n`);
  assert.deepEqual([await status('web'), await status('*.example.com')], [403, 200]);
});

test('--dry-run changes nothing; with --exit-code it exits with 1 when the vault differs', async (t) => {
  const line = commandLine(t);
  line.file(`api_token: ${token}\n`, 'cloudflare.yaml');
  const path = line.file(first, 'desired.yaml');
  await line.refused(['apply', '-f', path, '--dry-run'], /^vault: no vault in /);
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'www.example.test');
  const planned = await line.run('apply', '-f', path, '--dry-run');
  assert.deepEqual([planned.code, planned.stderr], [0, '']);
  assert.match(planned.stdout, /\n3 to create, 1 to change, 0 to remove\n$/);
  const drift = await line.run('apply', '-f', path, '--dry-run', '--exit-code');
  assert.equal(drift.code, 1);
  assert.equal(drift.stdout, planned.stdout);
  assert.equal(
    drift.stderr,
    `vault: the vault differs from ${path}\n  Run the command without --dry-run to apply the changes.\n`,
  );
  assert.deepEqual(await keysOf(line), []);
  assert.equal(existsSync(join(dirname(path), 'www.key')), false);
  await line.done('apply', '-f', path);
  await line.done('apply', '-f', path, '--dry-run', '--exit-code');
  await line.refused(['apply', '-f', path, '--exit-code'], /^vault: --exit-code needs --dry-run/, 2);
  await line.refused(['apply'], /^vault: --file is missing/, 2);
});

test('only --prune removes objects, requires --yes without a terminal, and keeps local-ca and revoked keys', async (t) => {
  const line = await applied(t);
  const create = ['api-key', 'create', '--scope', 'certificates:read', '--certificate'];
  await line.done(...create, 'web', '--name', 'gone');
  await line.done('api-key', 'revoke', '--id', '2');
  line.file(
    first.replace(/ {2}"\*[\s\S]*auto_renew: false\n/, '').replace(/dns_providers:[\s\S]*yaml}}\n/, ''),
    'desired.yaml',
  );
  await line.done(...create, '*.example.com', '--name', 'other');
  const nothing = await line.done('apply', '-f', line.path);
  assert.equal(nothing.stdout, 'No changes.\n');
  const asked = await line.run('apply', '-f', line.path, '--prune');
  assert.equal(asked.code, 1);
  assert.match(asked.stderr, /^vault: refusing to remove anything without confirmation\n {2}Add --yes/);
  const { stdout } = await line.done('apply', '-f', line.path, '--prune', '--yes');
  assert.equal(
    stdout,
    `- api-key other (id 3): revokes it
- certificate *.example.com: deletes all its versions and keys
- dns-provider cloudflare

0 to create, 0 to change, 3 to remove
`,
  );
  const states = (await keysOf(line)).map(({ name, state }) => `${name} ${state}`);
  assert.deepEqual(states, ['www active', 'gone revoked', 'other revoked']);
  const issuers = await line.json<{ name: string }[]>('issuer', 'list');
  assert.deepEqual(
    issuers.map(({ name }) => name),
    ['local-ca'],
  );
  assert.equal((await line.done('apply', '-f', line.path, '--prune')).stdout, 'No changes.\n');
});

test("pruning a certificate that an API key lists is rejected, and the vault's HTTPS certificate is kept", async (t) => {
  const line = await applied(t);
  line.file(first.replace(/ {2}web:\n.*\n/, ''), 'desired.yaml');
  await line.refused(
    ['apply', '-f', line.path, '--prune', '--yes'],
    `vault: ${line.path}:13: api_keys.www.certificates.0: certificate web would be removed, but this key lists it\n  Nothing was changed.\n`,
  );
  line.file('version: 1\n', 'desired.yaml');
  const own = { ...process.env, VAULT_TLS_CERTIFICATE: 'web', VAULT_DATA_DIR: line.data };
  const { stdout } = await commandLineOf(line, own)('apply', '-f', line.path, '--prune', '--yes');
  assert.doesNotMatch(stdout, /certificate web/);
  const left = await line.json<{ name: string }[]>('certificate', 'list');
  assert.deepEqual(
    left.map(({ name }) => name),
    ['web'],
  );
});

test('all errors in a document are reported together with line and path, and nothing is changed', async (t) => {
  const line = commandLine(t);
  const path = line.file(
    `version: 1
dns_providers:
  cloudflare:
    type: cloudflare
    zones: [not a zone]
    secret: ${token}
certificates:
  .web:
    domains: []
  shop:
    domains: [shop.example.test]
    key_typ: ec256
    issuer: nobody
api_keys:
  www:
    scopes: [everything]
    certificates: [web]
    expires_at: soon
`,
    'desired.yaml',
  );
  const { code, stdout, stderr } = await line.run('apply', '-f', path);
  assert.deepEqual([code, stdout], [1, '']);
  const lines = stderr.replaceAll(`vault: ${path}:`, '').trimEnd().split('\n');
  const expected = [
    '5: dns_providers.cloudflare.zones.0: "not a zone" is not a zone',
    '6: dns_providers.cloudflare.secret: secrets do not belong in this file: write {file: NAME}',
    '8: certificates.".web": ".web" is not a name',
    '9: certificates.".web".domains: at least one domain is required',
    '12: certificates.shop.key_typ: unknown setting',
    '16: api_keys.www.scopes.0: "everything" is not a scope',
    '18: api_keys.www.expires_at: "soon" is not an RFC 3339 timestamp',
    '  Nothing was changed.',
  ];
  assert.deepEqual(
    lines.map((text, index) => text.slice(0, expected[index]?.length)),
    expected,
    stderr,
  );
  assert.ok(!stderr.includes(token));
  assert.equal(existsSync(line.data), false);
});

test('errors that depend on the contents of the vault are reported with line and path', async (t) => {
  const line = commandLine(t);
  for (const name of ['twice', 'once', 'Reader']) {
    await line.done('api-key', 'create', `--name=${name}`, '--scope=certificates:read', '--certificate=*');
  }
  await nameKeyAlike(line.data, 2, 'twice');
  const path = line.file(
    `version: 1
issuers:
  ca: {directory_url: "https://ca.test/dir", eab_kid: me}
dns_providers:
  cloudflare: {type: cloudflare, zones: [example.com], secret: keep}
certificates:
  shop:
    domains: ["*.example.test"]
    issuer: ca
    challenge: http-01
  web:
    domains: [example.test]
    issuer: letsencrypt
imported_certificates:
  mail: {}
api_keys:
  twice: {scopes: [certificates:read], certificates: ["*"]}
  www: {scopes: [certificates:read], certificates: [none]}
  reader: {scopes: [certificates:read], certificates: ["*"]}
`,
    'desired.yaml',
  );
  const { code, stderr } = await line.run('apply', '-f', path);
  assert.equal(code, 1);
  const said = stderr.replaceAll(`vault: ${path}:`, '').split('\n');
  for (const [index, expected] of [
    /^3: issuers\.ca\.eab_kid: the HMAC key is missing; add eab_hmac_key/,
    /^5: dns_providers\.cloudflare\.secret: missing for a new provider or a new type/,
    /^10: certificates\.shop\.challenge: \*\.example\.test can only be validated with dns-01/,
    /^13: certificates\.web\.issuer: unknown issuer "letsencrypt"; add it to issuers/,
    /^15: imported_certificates\.mail: files are missing for a new certificate/,
    /^17: api_keys\.twice: 2 API keys have this name; write "twice \(id 1\)" or "twice \(id 2\)"/,
    /^18: api_keys\.www\.certificates\.0: unknown certificate "none"/,
    /^19: api_keys\.reader: reads like "Reader"; use that name, or rename or remove that one first/,
    /^ {2}Nothing was changed\.$/,
  ].entries()) {
    assert.match(said[index] ?? '', expected, stderr);
  }
});

test('invalid YAML, invalid documents and server settings are each rejected with a specific message', async (t) => {
  const line = commandLine(t);
  const cases: [text: string, stderr: RegExp][] = [
    ['version: 1\ncertificates:\n  *.example.com: {}\n', /:3: put a name that begins with \* in quotes/],
    ['version: 1\ncertificates:\n  a: {domains: [a.test]}\n  a: {domains: [b.test]}\n', /:4: duplicate key/],
    [`version: 1\ncertificates: {\n  ${token}\n`, /:\d+: /],
    ['just words', /not a document for "vault apply"; begin with "version: 1"/],
    ['listen: 127.0.0.1:8080\n', /server settings \(listen\) belong in the settings file of "vault serve"/],
    ['certificates: {}\n', /:1: version: write "version: 1"/],
    ['version: 2\n', /:1: version: write "version: 1"/],
    [
      'version: 1\ncertificates:\n  a:\n    domains: a.test\n    auto_renew: maybe\n',
      /:4: certificates\.a\.domains must be a list\n.*:5: certificates\.a\.auto_renew must be true or false\n/,
    ],
    [
      'version: 1\ncertificates:\n  a: {}\n',
      /:3: certificates\.a\.domains: at least one domain is required\n/,
    ],
    [`${token}: 1\n`, /: "\(not a name\)": unknown setting/],
  ];
  for (const [text, expected] of cases) {
    const { code, stderr } = await line.run('apply', '-f', line.file(text));
    assert.equal(code, 1, text);
    assert.match(stderr, expected);
    assert.ok(!stderr.includes(token), stderr);
  }
  const settings = line.file('version: 1\ncertificates: {}\n');
  await line.refused(
    ['certificate', 'list', '--config', settings],
    /"version" belongs in a file for "vault apply"/,
  );
});

test('secrets come from files or the environment, are compared without being printed, and stay with "keep"', async (t) => {
  const line = await applied(t);
  const withSecret = (secret: string) =>
    line.file(first.replace('{file: cloudflare.yaml}', secret), 'desired.yaml');
  withSecret('keep');
  assert.equal((await line.done('apply', '-f', line.path)).stdout, 'No changes.\n');
  withSecret('{env: CLOUDFLARE}');
  await line.refused(
    ['apply', '-f', line.path],
    `vault: ${line.path}:3: dns_providers.cloudflare.secret: environment variable CLOUDFLARE is not set\n  Nothing was changed.\n`,
  );
  const another = 'another-made-up-token-0123456789abcdef';
  const run = commandLineOf(line, { ...process.env, CLOUDFLARE: `api_token: ${another}` });
  const { stdout } = await run('apply', '-f', line.path);
  assert.match(stdout, /^~ dns-provider cloudflare\n {4}secret: \(secret\) → \(new secret\)\n\n0 to create/);
  assert.equal((await run('apply', '-f', line.path)).stdout, 'No changes.\n');
  assert.ok(!stdout.includes(another));
  withSecret('{file: nothing.yaml}');
  await line.refused(
    ['apply', '-f', line.path],
    /:3: dns_providers\.cloudflare\.secret: cannot read .*nothing\.yaml: no such file/,
  );
  line.file('api_tokn: x\n', 'nothing.yaml');
  await line.refused(['apply', '-f', line.path], /invalid settings for cloudflare/);
});

test('apply reads the document from standard input and prints the changes as JSON', async (t) => {
  const line = commandLine(t, { input: 'version: 1\ncertificates: {web: {domains: [a.test]}}\n' });
  const planned = { applied: true, changes: [{ action: 'create', section: 'certificates', name: 'web' }] };
  const answer = await line.json<typeof planned>('apply', '-f', '-');
  assert.deepEqual(
    { ...answer, changes: answer.changes.map(({ action, section, name }) => ({ action, section, name })) },
    planned,
  );
  assert.deepEqual(await line.json('apply', '-f', '-', '--dry-run'), { applied: false, changes: [] });
});

test('apply stopped by SIGINT reports the changes it made; the others remain for the next run', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'first', '--domain', 'a.test');
  const names = Array.from({ length: 300 }, (_, n) => `  w${n}: {domains: [w${n}.test]}\n`);
  const path = line.file(`version: 1\ncertificates:\n${names.join('')}`);
  const child = spawn(fromExecutable[0], ['apply', '-f', path, '--data-dir', line.data]);
  const said = text(child.stderr);
  child.stdout.setEncoding('utf8').on('data', (shown: string) => {
    if (shown.includes('300 to create')) child.kill('SIGINT');
  });
  const [code] = await once(child, 'close');
  const made = (await line.json<{ name: string }[]>('certificate', 'list')).length - 1;
  const expected =
    made === 0
      ? 'vault: stopped before the first change\n  Nothing was changed.\n'
      : `vault: stopped after ${made} of 300 changes\n  These changes stay. Run the command again to make the others.\n`;
  assert.deepEqual([code, await said], [1, expected]);
  const { stdout } = await line.done('apply', '-f', path, '--dry-run');
  assert.match(stdout, new RegExp(`\n${300 - made} to create, 0 to change, 0 to remove\n$`));
});

test('an existing secret file is never overwritten, and a new API key without a secret file is rejected', async (t) => {
  const line = commandLine(t);
  const text = 'version: 1\napi_keys:\n  a b: {scopes: [certificates:read], certificates: ["*"]}\n';
  const path = line.file(text, 'desired.yaml');
  await line.refused(
    ['apply', '-f', path],
    /:3: api_keys\."a b"\.secret_file: missing for a new API key; name a file/,
  );
  const dir = tempDir(t);
  await line.done('apply', '-f', path, '--key-dir', dir);
  const raw = readFileSync(join(dir, 'a%20b.key'), 'utf8');
  line.file(text.replace('a b', 'c').replace('}', ', secret_file: taken.key}'), 'desired.yaml');
  const taken = line.file('mine', 'taken.key');
  await line.refused(
    ['apply', '-f', path],
    /:3: api_keys\.c\.secret_file: the file .*taken\.key already exists/,
  );
  assert.equal(readFileSync(taken, 'utf8'), 'mine');
  line.file(text.replace('a b', 'c').replace('}', ', secret_file: none/c.key}'), 'desired.yaml');
  await line.refused(['apply', '-f', path], /no such directory: .*none\n/);
  const shared = ['c', 'd'].map(
    (name) => `  ${name}: {scopes: [certificates:read], certificates: ["*"], secret_file: shared.key}\n`,
  );
  line.file(`version: 1\napi_keys:\n${shared.join('')}`, 'desired.yaml');
  await line.refused(
    ['apply', '-f', path],
    /:4: api_keys\.d\.secret_file: API key c uses .*shared\.key too\n/,
  );
  assert.deepEqual(
    (await keysOf(line)).map(({ name }) => name),
    ['a b'],
  );
  assert.equal(readFileSync(join(dir, 'a%20b.key'), 'utf8'), raw);
});

test('an imported certificate gets a new version only when its files change', needs('openssl'), async (t) => {
  const line = commandLine(t);
  const one = makeChain(tempDir(t), { label: 'One' });
  const other = makeChain(tempDir(t), { label: 'Other' });
  const text =
    'version: 1\nimported_certificates:\n  mail: {fullchain_file: full.pem, private_key_file: key.pem}\n';
  const path = line.file(text, 'desired.yaml');
  line.file(one.fullchainPem, 'full.pem');
  line.file(one.leaf.keyPem, 'key.pem');
  assert.match((await line.done('apply', '-f', path)).stdout, /^\+ imported certificate mail\n/);
  assert.equal((await line.done('apply', '-f', path)).stdout, 'No changes.\n');
  line.file(other.fullchainPem, 'full.pem');
  await line.refused(['apply', '-f', path], /:3: imported_certificates\.mail: /);
  line.file(other.leaf.keyPem, 'key.pem');
  assert.match((await line.done('apply', '-f', path)).stdout, /^~ imported certificate mail\n/);
  line.file('version: 1\nimported_certificates:\n  mail:\n', 'desired.yaml');
  await line.refused(['apply', '-f', path], /:3: imported_certificates\.mail must be an object\n/);
  line.file('version: 1\nimported_certificates:\n  mail: {}\n', 'desired.yaml');
  assert.equal((await line.done('apply', '-f', path, '--prune')).stdout, 'No changes.\n');
  line.file('version: 1\nimported_certificates:\n  mail: {labels: [team=web]}\n', 'desired.yaml');
  assert.match(
    (await line.done('apply', '-f', path)).stdout,
    /^~ imported certificate mail\n +labels: .*team=web/,
  );
  assert.equal((await line.done('apply', '-f', path)).stdout, 'No changes.\n');
  assert.match((await line.done('export')).stdout, /\n {2}mail:\n {4}labels:\n {6}- team=web\n/);
  line.file('version: 1\ncertificates:\n  mail: {domains: [mail.example.test]}\n', 'desired.yaml');
  assert.match((await line.done('apply', '-f', path)).stdout, /^~ certificate mail/);
  line.file('version: 1\nimported_certificates:\n  mail: {}\n', 'desired.yaml');
  await line.refused(['apply', '-f', path], /an issuer renews this certificate/);
});

test('an issuer is added and changed after its directory is checked, and removed with its certificates', async (t) => {
  const line = commandLine(t);
  const key = Buffer.alloc(32, 7);
  const ca = await scriptedAcme(t, {
    ...{ tls: true, termsOfService: 'https://ca.example/terms', externalAccounts: { me: key } },
    profiles: { shortlived: 'six days' },
  });
  line.file(ca.ca ?? '', 'root.pem');
  line.file(key.toString('base64url'), 'hmac.key');
  const document = (others: string, certificate = '') =>
    line.file(
      `version: 1\nissuers:\n  ca:\n    directory_url: ${ca.directoryUrl}\n    ca_pem: {file: root.pem}\n${others}${certificate}`,
      'desired.yaml',
    );
  const path = document('');
  await line.refused(
    ['apply', '-f', path],
    /the CA requires you to accept its terms of service: https:\/\/ca\.example\/terms/,
  );
  const full =
    '    accept_terms: true\n    email: ops@example.test\n    eab_kid: me\n    eab_hmac_key: {file: hmac.key}\n    profile: shortlived\n';
  const web = 'certificates:\n  web: {domains: [a.test], issuer: ca}\n';
  document(full, web);
  const made = await line.done('apply', '-f', path);
  assert.match(
    made.stdout,
    /^\+ issuer ca\n[\s\S]*ca_pem: 1 certificate\n[\s\S]*eab_hmac_key: \(secret\)\n\+ certificate web\n/,
  );
  assert.equal((await line.done('apply', '-f', path, '--prune')).stdout, 'No changes.\n');
  document('    accept_terms: true\n    eab_kid: me\n', web);
  const changed = await line.done('apply', '-f', path);
  assert.match(
    changed.stdout,
    /^~ issuer ca\n {4}email: ops@example\.test → none\n {4}profile: shortlived → none\n/,
  );
  assert.equal((await line.done('apply', '-f', path)).stdout, 'No changes.\n');
  ca.override('directory', () => ({ status: 503, body: '' }) as never);
  document('    eab_kid: me\n    email: new@example.test\n', web);
  await line.refused(['apply', '-f', path, '--dry-run'], /^vault: /);
  line.file('version: 1\ncertificates:\n  web: {domains: [a.test], issuer: ca}\n', 'desired.yaml');
  await line.refused(
    ['apply', '-f', path, '--prune', '--yes'],
    /:3: certificates\.web\.issuer: issuer ca would be removed; add it to issuers/,
  );
  line.file('version: 1\n', 'desired.yaml');
  const own = commandLineOf(line, { ...process.env, VAULT_TLS_CERTIFICATE: 'web' });
  const kept = await own('apply', '-f', path, '--prune', '--yes');
  assert.equal(kept.stdout, 'No changes.\n', 'the own certificate stays, with its issuer');
  const gone = await line.done('apply', '-f', path, '--prune', '--yes');
  assert.match(gone.stdout, /^- certificate web: deletes all its versions and keys\n- issuer ca\n/);
});

/** The same vault in another environment; the command must succeed. */
function commandLineOf({ data }: CommandLine, environment: NodeJS.ProcessEnv) {
  return async (...args: readonly string[]) => {
    const outcome = await vault([...args, '--data-dir', data], { environment });
    assert.equal(outcome.code, 0, outcome.stderr);
    return outcome;
  };
}
