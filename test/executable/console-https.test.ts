/** The console over the vault's own HTTPS, and its installer command, which pins the vault's key. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { fakeSudo, finish, machine } from '../harness/client/installer.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

test(
  'the installer command pins the vault’s key from the first request on, and rejects a server with another key',
  needs('chromium'),
  async (t) => {
    const dataDir = tempDir(t);
    for (const name of ['vault', 'other']) {
      const args = ['--name', name, '--domain', '127.0.0.1', '--data-dir', dataDir];
      const created = await vault(['certificate', 'create', ...args]);
      assert.equal(created.code, 0, created.stderr);
    }
    const serving = (name: string) => serve(t, dataDir, { args: ['--tls-certificate', name] });
    const { alice } = await visit(t, { dataDir, start: () => serving('vault') });
    const { page, open } = await alice({ ignoreHTTPSErrors: true });
    await open('/api-keys/new');
    await page.getByLabel('Name', { exact: true }).fill('web-1');
    await page.getByRole('checkbox', { name: 'other' }).check();
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('vault gets a new key at its next renewal').waitFor();
    const client = machine(t);
    client.fake('sudo', fakeSudo);
    await page.getByLabel('Destination').fill(client.destination);
    await page.getByLabel('Reload command').fill('');
    await page.getByLabel('Verify at').fill('');
    const command = (await page.getByLabel('Installer command').textContent()) ?? '';
    assert.match(command, /^curl -fsS --insecure --pinnedpubkey sha256\/\/\S{44} https:\/\/127\.0\.0\.1:/);
    const environment = {
      ...{ HOME: client.home, PATH: `${client.bin}:${process.env.PATH}` },
      ...{ CERTIFICATE_VAULT_HOME: `${client.home}/vault`, CERTIFICATE_VAULT_FETCH_TRIES: '1' },
    };
    const { url: otherUrl } = await serving('other');
    const redirected = command.replaceAll(new URL(page.url()).origin, otherUrl);
    await finish('sh', ['-c', redirected], { environment });
    assert.ok(!existsSync(client.destination), 'another key was accepted');
    assert.equal(client.crontab(), '');
    const ended = await finish('sh', ['-c', command], { environment });
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(existsSync(`${client.destination}/tls.key`));
    await page.getByLabel('Verify the vault with').selectOption('public');
    await page.getByText('Machines reject this vault unless').waitFor();
  },
);

test(
  'setup and sign-in work over the vault’s own HTTPS, with a __Host- cookie',
  needs('chromium'),
  async (t) => {
    const dataDir = tempDir(t);
    const start = () => serve(t, dataDir, { args: ['--tls-certificate', 'vault'] });
    const { alice, url } = await visit(t, { dataDir, start });
    assert.match(url, /^https:/);
    const { context, open, page, createCertificates } = await alice({ ignoreHTTPSErrors: true });
    const [cookie] = await context.cookies();
    assert.equal(cookie?.name, '__Host-vault_session');
    assert.deepEqual([cookie?.secure, cookie?.httpOnly, cookie?.sameSite], [true, true, 'Strict']);
    await createCertificates('web.example.test');
    await open('/');
    await page.getByRole('link', { name: 'web.example.test' }).first().waitFor();
    await page.getByRole('link', { name: 'vault', exact: true }).first().waitFor();
  },
);
