/**
 * `vault doctor` as a person runs it: on vaults that are well, that are ill in one way each, and that cannot be opened.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { makeChain } from '../../../harness/ca/openssl-chain.ts';
import { nameKeyAlike } from '../../../harness/key-names.ts';
import { clientId, clientSecret, scriptedProvider } from '../../../harness/oidc/scripted-provider.ts';
import { type CommandLine, commandLine, commandLineWithCa } from '../../../harness/processes/command-line.ts';
import { needs } from '../../../harness/processes/missing-program.ts';
import { freePort } from '../../../harness/processes/port.ts';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

type Finding = {
  readonly check: string;
  readonly status: string;
  readonly about?: string;
  readonly message: string;
  readonly hint?: string;
};

type Report = { readonly status: string; readonly version: string; readonly findings: Finding[] };

/** What the doctor says, without where the vault is served: only some of these are. */
async function examined({ run }: CommandLine, ...args: readonly string[]): Promise<Report> {
  const { stdout } = await run('doctor', '--json', ...args);
  const report = JSON.parse(stdout) as Report;
  return { ...report, findings: report.findings.filter(({ check }) => check !== 'serving') };
}

/** Those that are not well, as `status check: message`. */
function troubles({ findings }: Report): string[] {
  return findings
    .filter(({ status, check }) => status !== 'ok' && check !== 'disk' && check !== 'administrators')
    .map(({ status, check, message }) => `${status} ${check}: ${message}`);
}

/** Changes rows as no command would. */
function tamper({ data }: CommandLine, statement: string, ...values: unknown[]): void {
  const database = new BetterSqlite3(join(data, 'vault.db'));
  try {
    assert.ok(database.prepare(statement).run(...values).changes > 0, statement);
  } finally {
    database.close();
  }
}

async function vaultWith(t: Parameters<typeof commandLine>[0], ...names: string[]): Promise<CommandLine> {
  const line = commandLine(t);
  for (const name of names) {
    await line.done('certificate', 'create', '--name', name, '--domain', `${name}.example.com`);
  }
  await line.done('backup', join(line.data, '..', 'first.backup'));
  return line;
}

test('a healthy, served and backed-up vault has no failed findings and exit code 0', async (t) => {
  const line = await vaultWith(t, 'web');
  const create = ['admin', 'create', '--name', 'ann', '--password-stdin', '--data-dir', line.data];
  const made = await vault(create, { input: 'four words nobody wrote\n' });
  assert.equal(made.code, 0, made.stderr);
  const { url } = await serve(t, line.data);
  const { code, stdout } = await line.run('doctor', '--url', url);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /^ok {7}permissions /m);
  assert.match(stdout, /^ok {7}database {8}all pages are intact \(\d\.\d MiB\)$/m);
  assert.match(stdout, /^ok {7}certificates {4}1 of 1 certificate is healthy; next renewal on 20/m);
  assert.match(stdout, /^ok {7}backup {10}the last backup is 0 minutes old$/m);
  assert.match(stdout, new RegExp(`^ok {7}serving {9}${url} is ready$`, 'm'));
  assert.match(stdout, /^ok {7}administrators {2}/m);
  assert.doesNotMatch(stdout, /FAILED/);
});

test('doctor changes nothing, and creates nothing without a vault', async (t) => {
  const line = commandLine(t);
  const { code, stdout, stderr } = await line.run('doctor');
  assert.equal(code, 1);
  assert.match(stdout, /^FAILED {3}permissions {5}no vault in .*\n +Start "vault serve" to create one/m);
  assert.match(stderr, /^vault: 2 of 2 findings need attention\n/);
  assert.equal(existsSync(line.data), false);

  const well = await vaultWith(t, 'web');
  const before = readFileSync(join(well.data, 'vault.db'));
  const files = readdirSync(well.data).sort();
  await examined(well);
  assert.ok(readFileSync(join(well.data, 'vault.db')).equals(before));
  assert.deepEqual(readdirSync(well.data).sort(), files);
});

test('invalid settings are the only finding', async (t) => {
  const line = await vaultWith(t, 'web');
  writeFileSync(join(line.data, 'vault.yaml'), 'listne: 127.0.0.1:80\n', { mode: 0o600 });
  const { findings } = await examined(line);
  assert.deepEqual(
    findings.map(({ check, status }) => [check, status]),
    [['settings', 'failed']],
  );
  assert.match(findings[0]?.message ?? '', /unknown setting "listne"/);
  assert.match(findings[0]?.hint ?? '', /listen/);
});

test('an exposed, missing or wrong master key and a damaged database are failed findings', async (t) => {
  const line = await vaultWith(t, 'web');
  const key = join(line.data, 'master.key');
  const database = join(line.data, 'vault.db');
  const rightKey = readFileSync(key);

  chmodSync(key, 0o644);
  const exposed = await examined(line);
  assert.deepEqual(troubles(exposed), [
    `failed permissions: the key file ${key} is readable by other users (mode 0644)`,
  ]);
  assert.equal(exposed.findings[0]?.hint, `Fix: chmod 600 ${key}`);

  rmSync(key);
  assert.deepEqual(troubles(await examined(line)), [
    `failed master-key: the master key ${key} is missing; no private key can be opened without it`,
  ]);

  writeFileSync(key, Buffer.alloc(32, 1), { mode: 0o600 });
  assert.deepEqual(troubles(await examined(line)), [
    `failed master-key: ${key} is not the master key of the vault in ${line.data}`,
  ]);

  writeFileSync(key, rightKey);
  assert.deepEqual(troubles(await examined(line)), []);

  const bytes = readFileSync(database);
  bytes.fill(0x5a, 8192, 8192 + 2048);
  writeFileSync(database, bytes);
  const [damaged, ...others] = troubles(await examined(line));
  assert.match(damaged ?? '', /^failed database: the database is damaged/);
  assert.deepEqual(others, []);
  assert.equal(statSync(database).size, bytes.length);
});

test('a database of a newer vault is a failed finding, one of an older vault a warning', async (t) => {
  const line = await vaultWith(t, 'web');
  tamper(line, "insert into kysely_migration values ('9999-of-tomorrow', '2026-11-21T00:00:00Z')");
  const [newer] = troubles(await examined(line));
  assert.match(
    newer ?? '',
    /^failed database: .* was written by a newer vault \(its schema has 9999-of-tomorrow\)$/,
  );

  tamper(
    line,
    "delete from kysely_migration where name like '9999%' or name = (select max(name) from kysely_migration where name not like '9999%')",
  );
  const report = await examined(line);
  assert.deepEqual(troubles(report), [
    'warning database: the database schema is from an older version of the vault',
  ]);
  assert.equal(
    report.findings.some(({ check }) => check === 'certificates'),
    false,
  );
});

test('certificates that are expired, expiring, failing or not yet issued are reported, worst first', async (t) => {
  const line = await vaultWith(t, 'expired', 'expiring', 'failing', 'off', 'pending', 'well');
  const now = Date.now();
  const day = 86_400_000;
  const age = (name: string, before: number, after: number) =>
    tamper(
      line,
      'update certificate_versions set not_before = ?, not_after = ? where certificate_id = (select id from certificates where name = ?)',
      now - before * day,
      now + after * day,
      name,
    );
  age('expired', 90, -1);
  age('off', 90, -1);
  age('expiring', 80, 3.5);
  tamper(line, "update certificates set disabled_at = 1 where name = 'off'");
  tamper(line, "update certificates set last_error = 'the CA said no' where name in ('failing', 'expiring')");
  tamper(line, "update certificates set current_version = null, created_at = 1 where name = 'pending'");
  const report = await examined(line);
  assert.deepEqual(
    troubles(report).map((text) => text.replace(/on 20\S+Z/, 'on DATE')),
    [
      'failed certificate: expired expired on DATE',
      'failed certificate: expiring expires in 3 days and has not been renewed: the CA said no',
      'warning certificate: failing failed to renew: the CA said no',
      'warning certificate: pending has not been issued yet',
    ],
  );
  const summary = report.findings.find(({ check }) => check === 'certificates');
  assert.match(summary?.message ?? '', /^2 of 6 certificates are healthy/);
  assert.equal(report.status, 'failed');
});

test('more than a thousand certificates with problems are 20 findings and a count', async (t) => {
  const line = await vaultWith(t, 'web');
  const database = new BetterSqlite3(join(line.data, 'vault.db'));
  const { count } = database
    .prepare("select count(*) as count from pragma_table_info('certificates')")
    .get() as { count: number };
  assert.ok(count > 5);
  const columns = (database.pragma('table_info(certificates)') as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name !== 'id' && name !== 'name');
  database.exec(
    `with recursive n(i) as (select 1 union all select i + 1 from n where i < 1200)
     insert into certificates (name, ${columns.join(', ')}) select 'more-' || i, ${columns.join(', ')} from certificates, n where name = 'web'`,
  );
  database.exec("update certificates set last_error = 'no' where name like 'more-%'");
  database.exec('update certificates set current_version = null, created_at = 1');
  database.close();
  const report = await examined(line);
  const named = report.findings.filter(({ check }) => check === 'certificate');
  assert.equal(named.length, 20);
  assert.ok(report.findings.some(({ message }) => message === '1181 more certificates have problems'));
});

test('a renewal that no worker starts, an expiring API key and an old backup are reported', async (t) => {
  const line = await vaultWith(t, 'web');
  const soon = new Date(Date.now() + 5 * 86_400_000).toISOString();
  const later = new Date(Date.now() + 50 * 86_400_000).toISOString();
  const key = ['api-key', 'create', '--scope', 'certificates:read', '--certificate', 'web'];
  await line.done(...key, '--name', 'ends', '--expires-at', soon);
  await line.done(...key, '--name', 'stays', '--expires-at', later);
  tamper(
    line,
    `insert into renewals (certificate_id, status, requested_by, requested_at)
     select id, 'queued', 'local-cli', ? from certificates`,
    Date.now() - 3_600_000,
  );
  tamper(line, "update settings set value = ? where key = 'last-backup-at'", Date.now() - 9 * 86_400_000);
  const found = troubles(await examined(line)).map((text) => text.replace(/20\d\d-\S+Z/, 'DATE'));
  assert.deepEqual(found, [
    'failed renewals: a renewal has been queued since DATE and no worker picks it up',
    'warning api-key: API key 1 (ends) expires on DATE',
    'warning backup: the last backup is 9 days old',
  ]);
});

test('duplicate API key names are a warning, and the keys keep working', async (t) => {
  const line = await vaultWith(t, 'web');
  const raw: string[] = [];
  for (const name of ['www', 'other', 'third', 'alone']) {
    const rights = ['--scope', 'certificates:read', '--certificate', 'web'];
    raw.push((await line.done('api-key', 'create', '--name', name, ...rights)).stdout.trim());
  }
  await line.done('api-key', 'revoke', 'third');
  for (const id of [2, 3]) await nameKeyAlike(line.data, id, 'www');
  const found = (await examined(line)).findings.filter(({ check }) => check === 'api-key');
  assert.deepEqual(
    found.map(({ status, message }) => `${status} ${message}`),
    ['warning 2 API keys have the name "www": ids 1, 2'],
  );
  const { url } = await serve(t, line.data);
  const statusOf = async (key: string) =>
    (await fetch(`${url}/api/v1/certificates`, { headers: { Authorization: `Bearer ${key}` } })).status;
  assert.deepEqual(await Promise.all(raw.map(statusOf)), [200, 200, 401, 200]);
});

test('a clock behind the last audit event is a failed finding', async (t) => {
  const line = await vaultWith(t, 'web');
  // The events themselves are left alone: this one is simply the last.
  await line.done('certificate', 'create', '--name', 'next', '--domain', 'next.example.com');
  tamper(
    line,
    'update audit_events set at = ? where id = (select max(id) from audit_events)',
    Date.now() + 86_400_000,
  );
  const [clock] = troubles(await examined(line));
  assert.match(clock ?? '', /^failed clock: the clock says \S+, but the last audit event is from \S+$/);
  const { stderr } = await line.done('certificate', 'create', '--name=late', '--domain=late.test');
  assert.match(
    stderr,
    /^Warning: the clock says \S+, but the last audit event is from \S+\n {2}The clock was set back, /,
  );
});

test('a CA that is unreachable, untrusted, not an ACME server or has a skewed clock is a failed finding', async (t) => {
  const line = await commandLineWithCa(t, { tls: true });
  await line.done('backup', join(line.data, '..', 'first.backup'));
  assert.deepEqual(troubles(await examined(line)), []);

  line.ca.override('directory', { status: 503, headers: {}, body: '' });
  const [busy] = troubles(await examined(line));
  assert.match(busy ?? '', /^failed issuer: ca: localhost:\d+ returned status 503$|returned status 503$/);

  line.ca.override('directory', { status: 200, headers: { 'Content-Type': 'text/html' }, body: '<p>hello' });
  const [noCa] = troubles(await examined(line));
  assert.match(noCa ?? '', /^failed issuer: ca: /);

  line.ca.override('directory', async (_, usual) => {
    const reply = await usual();
    const date = new Date(Date.now() - 3 * 3_600_000).toUTCString();
    return { ...reply, headers: { ...reply.headers, Date: date } };
  });
  const [skewed] = troubles(await examined(line));
  assert.match(
    skewed ?? '',
    /^failed clock: the clock of this machine is 1(79|80) minutes ahead of the clock of the CA of ca$/,
  );

  tamper(line, 'update acme_issuers set ca_pem = null');
  const [untrusted] = troubles(await examined(line));
  assert.match(untrusted ?? '', /^failed issuer: ca: the certificate of \S+ is not trusted: /);

  tamper(line, 'update acme_issuers set directory_url = ?', `http://127.0.0.1:${await freePort()}/dir`);
  const [down] = troubles(await examined(line));
  assert.match(down ?? '', /^failed issuer: ca: cannot connect to 127\.0\.0\.1:\d+: connection refused/);
  const requests = line.ca.requests.length;
  assert.deepEqual(troubles(await examined(line, '--offline')), []);
  assert.equal(line.ca.requests.length, requests);
});

test('administrators of whom none has the role admin are a warning', async (t) => {
  const line = await vaultWith(t, 'web');
  const create = (name: string, ...more: readonly string[]) =>
    vault(['admin', 'create', '--password-stdin', '--data-dir', line.data, '--name', name, ...more], {
      input: 'correct horse battery staple',
    });
  const of = async () => {
    const { findings } = await examined(line, '--offline');
    return findings.filter(({ check }) => check === 'administrators');
  };
  assert.equal((await create('vera', '--role=viewer')).code, 0);
  const [none] = await of();
  assert.match(none?.message ?? '', /^no administrator has the role admin; /);
  assert.equal(none?.hint, 'Fix: vault admin update --name vera --role admin');
  await line.done('admin', 'update', '--name=vera', '--role=admin');
  assert.deepEqual(
    (await of()).map(({ status }) => status),
    ['ok'],
  );
});

test('warnings cause exit code 1 only with --strict', async (t) => {
  const line = await vaultWith(t, 'web');
  const { url } = await serve(t, line.data);
  const relaxed = await line.run('doctor', '--url', url, '--offline');
  assert.match(relaxed.stdout, /^WARNING {2}administrators {2}no administrator; /m);
  assert.equal(relaxed.code, 0);
  const strict = await line.run('doctor', '--url', url, '--offline', '--strict');
  assert.equal(strict.code, 1);
  assert.equal(
    strict.stderr,
    'vault: 1 of 12 findings needs attention\n  The lines above say how to fix them.\n',
  );
});

test('a vault that serves HTTPS with its private CA is ready; a certificate for another name is a warning', async (t) => {
  const line = await vaultWith(t, 'web');
  const args = ['--tls-certificate', 'vault', '--public-url', 'https://localhost'];
  const { url } = await serve(t, line.data, { args });
  const { stdout } = await line.run('doctor', '--url', url.replace('127.0.0.1', 'localhost'));
  assert.match(stdout, /^ok {7}serving {9}https:\/\/localhost:\d+ is ready$/m);
  const byAddress = await line.run('doctor', '--url', url);
  assert.match(
    byAddress.stdout,
    /^WARNING {2}serving {9}https:\/\/127\.0\.0\.1:\d+ answers, but the certificate .*\n +Use --url/m,
  );
});

test('a write-ahead log that grows is a warning, and all other checks still run', async (t) => {
  const line = await vaultWith(t, 'web');
  writeFileSync(join(line.data, 'vault.db-wal'), '', { mode: 0o600 });
  truncateSync(join(line.data, 'vault.db-wal'), 300 * 1024 * 1024);
  const report = await examined(line);
  assert.deepEqual(troubles(report), ['warning database: the write-ahead log has grown to 300 MiB']);
  assert.ok(report.findings.some(({ check }) => check === 'certificates'));
});

test(
  'an expired certificate without automatic renewal has a hint to import or renew it',
  needs('openssl'),
  async (t) => {
    const line = await vaultWith(t, 'web');
    const chain = makeChain(tempDir(t));
    const files = [
      '--fullchain',
      line.file(chain.fullchainPem),
      '--private-key',
      line.file(chain.leaf.keyPem),
    ];
    await line.done('certificate', 'import', '--name', 'mail', ...files);
    await line.done('certificate', 'update', '--name', 'web', '--no-auto-renew');
    tamper(line, 'update certificate_versions set not_after = ?', Date.now() - 1);
    const { findings } = await examined(line);
    const hints = findings.filter(({ check }) => check === 'certificate').map(({ hint }) => hint);
    assert.deepEqual(hints, [
      'It does not renew automatically. Import a new version.\nFix: vault certificate import --name mail --fullchain FILE --private-key FILE',
      'It does not renew automatically. Renew it, or turn on automatic renewal.\nTry: vault certificate renew --name web --wait\nTry: vault certificate update --name web --auto-renew',
    ]);
  },
);

test('a server that does not respond or is not a vault is a failed finding', async (t) => {
  const line = await vaultWith(t, 'web');
  const port = await freePort();
  const { stdout } = await line.run('doctor', '--url', `http://127.0.0.1:${port}`);
  assert.match(
    stdout,
    new RegExp(
      `^FAILED {3}serving {9}the server does not respond: cannot connect to 127\\.0\\.0\\.1:${port}`,
      'm',
    ),
  );
  const web = createServer((_, response) => response.end('hello')).listen(port, '127.0.0.1');
  t.after(() => web.close());
  await once(web, 'listening');
  const other = await line.run('doctor', '--url', `http://127.0.0.1:${port}`);
  assert.match(other.stdout, /^FAILED {3}serving {9}the server at \S+ is not a vault \(status 200\)$/m);
  await line.refused(['doctor', '--url', 'vault.example.com'], /^vault: --url: "vault\.example\.com" is not/);
});

test('an OpenID Connect provider that cannot be used is a failed finding, and so is its secret', async (t) => {
  const line = await commandLineWithCa(t);
  await line.done('backup', join(line.data, '..', 'first.backup'));
  const provider = await scriptedProvider(t, Date.now);
  const secret = line.file(clientSecret, 'oidc-secret');
  chmodSync(secret, 0o600);
  const settings = {
    public_url: 'https://vault.example.com',
    oidc_issuer: provider.issuer,
    oidc_client_id: clientId,
    oidc_client_secret_file: secret,
    oidc_admins: 'vault-admins',
    oidc_device_flow: true,
  };
  const settle = (more: Partial<typeof settings> = {}) =>
    writeFileSync(join(line.data, 'vault.yaml'), JSON.stringify({ ...settings, ...more }));
  settle();
  assert.deepEqual(troubles(await examined(line)), []);
  const { findings } = await examined(line);
  const [found] = findings.filter(({ check }) => check === 'oidc');
  assert.deepEqual(
    [found?.status, found?.message],
    ['ok', `${provider.issuer} is reachable, and its metadata is valid`],
  );
  provider.device = undefined;
  assert.match(
    troubles(await examined(line))[0] ?? '',
    /^warning oidc: \S+ is reachable, but has no device_authorization_endpoint, so "vault login --oidc" fails/,
  );
  provider.metadata = { issuer: 'https://other.example.com' };
  const [other] = troubles(await examined(line));
  assert.match(
    other ?? '',
    /^failed oidc: http:\/\/127\.0\.0\.1:\d+: the metadata of the provider has another issuer: https:\/\/other\.example\.com$/,
  );
  provider.isDown = true;
  assert.match(troubles(await examined(line))[0] ?? '', /^failed oidc: /);
  provider.stop();
  const [down] = troubles(await examined(line));
  assert.match(down ?? '', /^failed oidc: \S+: provider unreachable: cannot connect to 127\.0\.0\.1:\d+: /);
  assert.deepEqual(troubles(await examined(line, '--offline')), []);
  settle({ oidc_client_secret_file: '/absent/secret' });
  const [unread] = troubles(await examined(line));
  assert.match(
    unread ?? '',
    /^failed oidc: --oidc-client-secret-file: cannot read \/absent\/secret: no such file/,
  );
});
