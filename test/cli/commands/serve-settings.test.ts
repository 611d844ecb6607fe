/** What a running server says about itself by flags alone: commands, the doctor and requests follow it. */
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import BetterSqlite3 from 'better-sqlite3';
import { visit } from '../../harness/http/https-client.ts';
import { goodPassword } from '../../harness/http/sign-in-fixtures.ts';
import { type CommandLine, commandLine } from '../../harness/processes/command-line.ts';
import { type RunningVault, serve, vault } from '../../harness/processes/vault-process.ts';

const inUse =
  /^vault: Certificate "own" is in use: the vault serves HTTPS with it\.\n {2}Clients that pin its key/;
const deletion = ['certificate', 'delete', '--name', 'own'];

async function serveHttps(t: TestContext, line: CommandLine, ...more: string[]): Promise<RunningVault> {
  return serve(t, line.data, { args: ['--tls-certificate', 'own', ...more] });
}

function recordIn({ data }: CommandLine): Record<string, unknown> | undefined {
  const database = new BetterSqlite3(join(data, 'vault.db'), { readonly: true });
  try {
    const text = database.prepare("select value from settings where key = 'served-settings'").pluck().get();
    return text === undefined ? undefined : (JSON.parse(String(text)) as Record<string, unknown>);
  } finally {
    database.close();
  }
}

test('the certificate in --tls-certificate can be deleted only after a clean stop of the server', async (t) => {
  const line = commandLine(t);
  const first = await serveHttps(t, line);
  await line.refused(deletion, inUse);
  await first.end('SIGKILL');
  await line.refused(deletion, inUse);
  const second = await serveHttps(t, line);
  await line.refused(deletion, inUse);
  assert.equal((await second.end()).code, 0);
  assert.equal(recordIn(line), undefined);
  await line.done(...deletion);
});

test('apply --prune keeps the certificate in --tls-certificate of a running server', async (t) => {
  const line = commandLine(t);
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  await serveHttps(t, line);
  const file = line.file('version: 1\ncertificates: {}\n', 'desired.yaml');
  await line.done('apply', '-f', file, '--prune', '--yes');
  const left = await line.json<{ name: string }[]>('certificate', 'list');
  assert.deepEqual(
    left.map(({ name }) => name),
    ['own'],
  );
});

test('DELETE returns 409 for the certificate that serves HTTPS, unless forced', async (t) => {
  const line = commandLine(t);
  const made = await vault(['admin', 'create', '--name=ann', '--password-stdin', '--data-dir', line.data], {
    input: `${goodPassword}\n`,
  });
  assert.equal(made.code, 0, made.stderr);
  const { url } = await serveHttps(t, line);
  const send = (method: string, path: string, body?: object, cookie = '') =>
    visit(`${url}${path}`, {
      method,
      headers: { 'Content-Type': 'application/json', Origin: url, Cookie: cookie },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const session = await send('POST', '/api/v1/session', { name: 'ann', password: goodPassword });
  const cookie = session.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
  const refused = await send('DELETE', '/api/v1/certificates/own', undefined, cookie);
  assert.equal(refused.status, 409, refused.body);
  const { code, detail } = JSON.parse(refused.body) as { code: string; detail: string };
  assert.equal(code, 'certificate_in_use');
  assert.match(detail, /^Certificate "own" is in use: the vault serves HTTPS with it\./);
  const forced = await send('DELETE', '/api/v1/certificates/own?force=true', undefined, cookie);
  assert.equal(forced.status, 204, forced.body);
});

test('doctor and setup-link without options use the settings of the running server', async (t) => {
  const line = commandLine(t);
  const backups = join(dirname(line.data), 'backups');
  mkdirSync(backups);
  const server = await serve(t, line.data, { args: ['--backup-dir', backups] });
  await line.done('certificate', 'create', '--name', 'web', '--domain', 'web.test');
  const { findings } = await line.json<{ findings: { check: string; message: string; about?: string }[] }>(
    'doctor',
    '--offline',
  );
  const messages = findings.map(({ message }) => message);
  assert.ok(messages.includes(`${server.url} is ready`), messages.join('\n'));
  assert.ok(findings.some(({ about }) => about === backups));
  assert.match((await line.done('admin', 'setup-link')).stdout, new RegExp(`^${server.url}/setup#token=`));
  await server.end();
  const later = await line.run('doctor', '--offline');
  assert.match(later.stdout, /^FAILED {3}serving {9}the server does not respond: .*127\.0\.0\.1:8080/m);
});

test('doctor checks the address of a killed server', async (t) => {
  const line = commandLine(t);
  const server = await serve(t, line.data);
  await server.end('SIGKILL');
  const { stdout } = await line.run('doctor', '--offline');
  const { host } = new URL(server.url);
  assert.match(stdout, new RegExp(`^FAILED {3}serving {9}the server does not respond: .*${host}`, 'm'));
});

test('the recorded settings of a server contain its address and no secret, and are not restored', async (t) => {
  const line = commandLine(t);
  const server = await serveHttps(t, line, '--public-url', 'https://vault.test');
  const { instance, ...record } = recordIn(line) ?? {};
  assert.match(String(instance), /^[0-9a-f]{16}$/);
  assert.deepEqual(record, {
    listen: { host: '127.0.0.1', port: Number(new URL(server.url).port) },
    public_url: 'https://vault.test',
    tls_certificate: 'own',
    tls_cert_file: null,
    tls_key_file: null,
    backup_dir: null,
    backup_every: null,
    backup_keep: null,
    master_keys: null,
  });
  await line.done('backup', join(dirname(line.data), 'copy.backup'));
  const copy = join(dirname(line.data), 'copy');
  const key = join(line.data, 'master.key');
  const restored = ['restore', join(dirname(line.data), 'copy.backup'), '--master-key-file', key];
  const { code, stderr } = await vault([...restored, '--data-dir', copy]);
  assert.equal(code, 0, stderr);
  assert.equal(recordIn({ ...line, data: copy }), undefined, 'a restored vault is not served');
});

test('an older server that stops keeps the recorded settings of a newer one', async (t) => {
  const line = commandLine(t);
  const older = await serve(t, line.data);
  const newer = await serveHttps(t, line);
  assert.equal((await older.end()).code, 0);
  await line.refused(deletion, inUse);
  assert.equal((await newer.end()).code, 0);
  await line.done(...deletion);
});
