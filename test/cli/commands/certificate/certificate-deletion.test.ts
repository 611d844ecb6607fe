/** `vault certificate delete`, and how a running server follows what is made and deleted beside it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { serve, vault } from '../../../harness/processes/vault-process.ts';
import { tempDir } from '../../../harness/temp-dir.ts';

const dir = mkdtempSync(join(tmpdir(), 'vault-deletion-'));
after(() => rmSync(dir, { recursive: true }));

const certificate = (command: string, ...args: string[]) =>
  vault(['certificate', command, '--data-dir', dir, ...args]);

before(async () => {
  assert.equal((await certificate('create', '--name=web', '--domain=www.example.com')).code, 0);
});

test('a running server serves a new certificate immediately and returns 404 after its deletion', async (t) => {
  const server = await serve(t, dir);
  const create = [
    'api-key',
    'create',
    '--data-dir',
    dir,
    '--name=any',
    '--scope=certificates:read',
    '--certificate=*',
  ];
  const headers = { Authorization: `Bearer ${(await vault(create)).stdout.trim()}` };
  const get = async () => {
    const response = await fetch(`${server.url}/api/v1/certificates/late/fullchain.crt`, { headers });
    return { status: response.status, text: await response.text() };
  };
  assert.equal((await get()).status, 404);
  assert.equal((await certificate('create', '--name=late', '--domain=late.test')).code, 0);
  const { status, text } = await get();
  assert.equal(status, 200);
  assert.match(text, /^-----BEGIN CERTIFICATE-----\n/);
  assert.deepEqual(await certificate('delete', '--name=late'), {
    code: 0,
    stdout: '',
    stderr:
      'Deleted certificate late. The vault keeps it for 30 days.\n' +
      '  To restore it: vault certificate undelete --name late\n',
  });
  assert.equal((await get()).status, 404);
});

test('a certificate in API key allowlists is deleted only with --force, which removes it from them', async () => {
  assert.equal((await certificate('create', '--name=named', '--domain=named.test')).code, 0);
  const options = ['--scope=certificates:read', '--certificate=named', '--certificate=web'];
  await vault(['api-key', 'create', '--data-dir', dir, '--name=holder', ...options]);
  const allowlist = async () => {
    const { stdout } = await vault(['api-key', 'list', '--data-dir', dir]);
    const keys = JSON.parse(stdout) as { name: string; certificates: string[] }[];
    return keys.find(({ name }) => name === 'holder')?.certificates.sort();
  };
  const refused = await certificate('delete', '--name=named');
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /^vault: API keys have "named" in their allowlists: \d+ \(holder\)\.\n {2}\S/);
  assert.deepEqual(await allowlist(), ['named', 'web']);
  assert.equal((await certificate('delete', '--name=named', '--force')).code, 0);
  assert.deepEqual(await allowlist(), ['web']);
  assert.equal((await certificate('show', '--name=named')).code, 1);
});

test('the certificate that the vault serves HTTPS with is deleted only with --force', async () => {
  assert.equal((await certificate('create', '--name=own', '--domain=vault.test')).code, 0);
  const environment = { ...process.env, VAULT_TLS_CERTIFICATE: 'own' };
  const remove = ['certificate', 'delete', '--data-dir', dir, '--name=own'];
  const refused = await vault(remove, { environment });
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /^vault: Certificate "own" is in use: the vault serves HTTPS with it\.\n {2}Clients that pin its key/,
  );
  assert.equal((await certificate('show', '--name=own')).code, 0);
  assert.equal((await vault([...remove, '--force'], { environment })).code, 0);
  assert.equal((await certificate('show', '--name=own')).code, 1);
});

test('list without certificates prints a hint on stderr, or an empty array with --json', async (t) => {
  const fresh = tempDir(t);
  await vault([
    'api-key',
    'create',
    '--data-dir',
    fresh,
    '--name=x',
    '--scope=certificates:read',
    '--certificate=*',
  ]);
  const table = await vault(['certificate', 'list', '--data-dir', fresh]);
  assert.deepEqual([table.code, table.stdout], [0, '']);
  assert.match(table.stderr, /^No certificates yet\.\n {2}Try: vault certificate create /);
  const json = await vault(['certificate', 'list', '--json', '--data-dir', fresh]);
  assert.deepEqual(json, { code: 0, stdout: '[]\n', stderr: '' });
});
