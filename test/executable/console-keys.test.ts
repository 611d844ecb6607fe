/** An API key from its making to its end, by the pages of the console and by a machine that uses it. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { finish, machine } from '../harness/client-installer.ts';
import { type Console, consoleVault, signedInConsole } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';

const browser = needs('chromium');

async function makeKey({ page, open }: Console, name: string, certificate: string): Promise<string> {
  await open('/api-keys/new');
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByRole('checkbox', { name: certificate }).check();
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.getByText('the only time that the key is shown').waitFor();
  return (await page.getByLabel('The API key').textContent()) ?? '';
}

test(
  'the installer command of a new key works as it is copied, and the audit log has it',
  browser,
  async (t) => {
    const vault = await consoleVault(t, ['web.example.test', 'mail.example.test']);
    const client = await signedInConsole(vault);
    const { page, context } = client;
    await context.grantPermissions(['clipboard-read', 'clipboard-write']);
    const rawKey = await makeKey(client, "Anna's server", 'web.example.test');
    assert.match(rawKey, /^vk_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}$/);

    const host = machine(t);
    host.fake('sudo', 'exec "$@"');
    const destination = `${host.home}/it's a place`;
    await page.getByLabel('Destination').fill(destination);
    await page.getByLabel('Reload command').fill(`echo "it's $HOME" >'${host.home}/reloaded'`);
    await page.getByLabel('Verify at').fill('');
    const figure = page.locator('figure', { has: page.getByLabel('The installer command') });
    await figure.getByRole('button', { name: 'Copy' }).click();
    await figure.getByText('Copied').first().waitFor();
    const command = String(await page.evaluate('navigator.clipboard.readText()'));
    assert.match(command, /SERVICE_API_KEY=vk_/);

    const environment = {
      HOME: host.home,
      PATH: `${host.bin}:${process.env.PATH}`,
      CERTIFICATE_VAULT_HOME: `${host.home}/vault`,
    };
    const ended = await finish('sh', ['-c', command], { environment });
    assert.equal(ended.code, 0, ended.stderr);
    assert.ok(existsSync(`${destination}/tls.crt`) && existsSync(`${destination}/tls.key`));
    assert.ok(existsSync(`${host.home}/reloaded`));
    assert.match(host.crontab(), /certificate-vault|install\.sh/);

    await client.open('/audit-log?action=certificate.download');
    await page.getByText('private.key').first().waitFor();
    await page.getByRole('link', { name: "Anna's server" }).first().waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Export CSV' }).click(),
    ]);
    assert.match(download.suggestedFilename(), /\.csv$/);

    await client.open('/api-keys');
    await page.getByRole('rowheader', { name: "Anna's server" }).waitFor();
  },
);

test('a revoked key is refused at once, and can be deleted then', browser, async (t) => {
  const vault = await consoleVault(t, ['web.example.test']);
  const client = await signedInConsole(vault);
  const { page } = client;
  const rawKey = await makeKey(client, 'web-01', 'web.example.test');
  const ask = () =>
    fetch(new URL('/api/v1/certificates', vault.url), { headers: { Authorization: `Bearer ${rawKey}` } });
  assert.equal((await ask()).status, 200);
  await page.getByRole('link', { name: 'Done' }).click();
  await page.getByRole('button', { name: 'Actions for web-01' }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('revoked', { exact: true }).waitFor();
  assert.equal((await ask()).status, 401);
  await page.getByRole('button', { name: 'Actions for web-01' }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'No API keys yet' }).waitFor();
});

test('a key for any certificate says that it also covers later ones', browser, async (t) => {
  const vault = await consoleVault(t);
  const { page, open } = await signedInConsole(vault);
  await open('/api-keys/new');
  await page.getByLabel('Name', { exact: true }).fill('monitoring');
  await page.getByLabel('Any certificate, also those that are added later').check();
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.getByText('There is no certificate yet').waitFor();
  const [key] = JSON.parse(await vault.command('api-key', 'list')) as { certificates: string[] }[];
  assert.deepEqual(key?.certificates, ['*']);
});

test('what the vault refuses of a new key stands at the fields', browser, async (t) => {
  const vault = await consoleVault(t, ['web.example.test']);
  const { page, open, complaints } = await signedInConsole(vault);
  await open('/api-keys/new');
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.locator('.field-error', { hasText: 'a name is needed' }).waitFor();
  await page.locator('.field-error', { hasText: 'at least one certificate name is needed' }).waitFor();
  // The browser reports every answer with 400.
  assert.match(complaints.splice(0).join(), /400/);
});
