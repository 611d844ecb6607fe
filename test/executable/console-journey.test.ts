/**
 * The journey of an administrator and a machine, in a browser and a shell against one running executable: from the
 * setup link to the sign-out. Each test continues where the previous one stopped.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Page } from 'playwright-core';
import { type Chain, makeChain } from '../harness/ca/openssl-chain.ts';
import { assertPair, fakeSudo, finish, type Machine, machine } from '../harness/client/installer.ts';
import { type Person, type Visit, visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const missing = [needs('chromium'), needs('openssl'), needs('curl')].find(({ skip }) => skip !== undefined);

/** Has a space and a quote, which the shell must not interpret. */
const keyName = "Anna's server";

test('an administrator does everything in the console, from setup to sign-out', missing ?? {}, async (t) => {
  const there = await visit(t);
  const alice = await there.alice();
  const client = machine(t);
  await t.test('the private CA issues a certificate from the form', () => createCertificate(alice));
  await t.test('dropped PEM files are previewed before they are imported', (t) => importPem(t, alice));
  await t.test('a selected PKCS#12 file opens with its password', (t) => importPkcs12(t, there, alice));
  const rawKey = await createKey(alice);
  await t.test('the copied command installs the files', () => install(alice, client));
  await t.test('the audit log shows the download', () => checkDownload(alice));
  await t.test('the page shows a renewal until it finishes, and the machine gets the new version', () =>
    renewAndFetch(alice, client),
  );
  await t.test('a revoked key is rejected from then on', () => revoke(there, alice, client, rawKey));
  await t.test('signing out ends the session in all tabs', () => signOut(there, alice));
});

async function createCertificate({ page }: Person): Promise<void> {
  await page.getByRole('link', { name: 'Create certificate' }).first().click();
  await page.getByLabel('Domains').fill('web.example.test\nwww.web.example.test');
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'web.example.test');
  await page.getByLabel('Issuer', { exact: true }).selectOption('local-ca');
  await page.getByLabel('Key type').selectOption('ec384');
  await page.getByLabel('Usage').selectOption('Servers only');
  await page.getByLabel('Lifetime').fill('30d');
  await page.getByRole('button', { name: 'Create certificate' }).click();
  await page.getByRole('heading', { level: 1, name: 'web.example.test' }).waitFor();
  await page.getByText('web.example.test, www.web.example.test').first().waitFor();
  await page.getByText('servers', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'private.key' }).waitFor();
}

async function importPem(t: TestContext, { page, open, ask }: Person): Promise<void> {
  const { fullchainPem, leaf } = makeChain(tempDir(t), { names: 'DNS:shop.example.test' });
  await open('/import');
  await drop(page, { 'shop.pem': fullchainPem, 'shop.key': leaf.keyPem });
  const preview = page.getByRole('region', { name: 'Preview' });
  await preview.getByText('included, matches the certificate').waitFor();
  await preview.getByText('shop.example.test').first().waitFor();
  await preview.getByText('Test Intermediate 2').first().waitFor();
  assert.deepEqual(await namesOf(ask), ['web.example.test'], 'stored before it was confirmed');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'shop.example.test' }).waitFor();
  assert.deepEqual(await namesOf(ask), ['shop.example.test', 'web.example.test']);
}

async function importPkcs12(
  t: TestContext,
  { expectComplaint }: Visit,
  { page, open, ask }: Person,
): Promise<void> {
  const file = pkcs12(tempDir(t), 'open sesame');
  await open('/import');
  // The vault answers 400 because it needs the password.
  expectComplaint(/status of 400.*imports/);
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: 'Choose files' }).click();
  await (await chooser).setFiles(file);
  await page.getByText('protected by a password').first().waitFor();
  await page.getByLabel('Password of the PKCS#12 file').fill('open sesame');
  await page.getByText('included, matches the certificate').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'mail.example.test' }).waitFor();
  assert.equal((await namesOf(ask)).length, 3);
}

/** Returns the raw key, which the page shows once. */
async function createKey({ page, open, ask }: Person): Promise<string> {
  await open('/api-keys/new');
  await page.getByLabel('Name', { exact: true }).fill(keyName);
  await page.getByLabel('Request renewals').check();
  await page.getByRole('checkbox', { name: 'web.example.test' }).check();
  await page.getByRole('button', { name: 'Create API key' }).click();
  await page.getByText('The key is shown only once').waitFor();
  const rawKey = (await page.getByLabel('API key', { exact: true }).textContent()) ?? '';
  assert.match(rawKey, /^vk_[A-Za-z0-9_-]{12}\.[A-Za-z0-9_-]{43}$/);
  const [created] = (await ask('GET', '/api-keys')) as { scopes: string[]; certificates: string[] }[];
  assert.deepEqual(created?.scopes, ['certificates:read', 'private_keys:read', 'renewals:trigger']);
  assert.deepEqual(created?.certificates, ['web.example.test']);
  return rawKey;
}

async function install({ page, context }: Person, client: Machine): Promise<void> {
  client.fake('sudo', fakeSudo);
  const reloaded = join(client.home, 'reloaded');
  await page.getByLabel('Destination').fill(destinationOf(client));
  await page.getByLabel('Reload command').fill(`echo "it's $HOME" >'${reloaded}'`);
  await page.getByLabel('Verify at').fill('');
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const figure = page.locator('figure', { has: page.getByLabel('Installer command') });
  await figure.getByRole('button', { name: 'Copy' }).click();
  await figure.getByText('Copied').first().waitFor();
  const command = String(await page.evaluate('navigator.clipboard.readText()'));
  assert.match(command, /SERVICE_API_KEY=vk_/);
  const ended = await inShell(client, command);
  assert.equal(ended.code, 0, ended.stderr);
  assert.equal(readFileSync(reloaded, 'utf8'), `it's ${client.home}\n`);
  assert.equal(installed(client).subjectAltName, 'DNS:web.example.test, DNS:www.web.example.test');
  assert.notEqual(client.crontab(), '');
}

async function checkDownload({ page, open }: Person): Promise<void> {
  await open('/audit-log?action=certificate.download');
  const key = page.getByRole('listitem').filter({ hasText: 'private.key' });
  await key.getByRole('link', { name: keyName }).first().waitFor();
  await key.getByRole('link', { name: 'web.example.test', exact: true }).first().waitFor();
  await key.getByText('from 127.0.0.1').first().waitFor();
  const downloading = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Export CSV' }).click();
  const download = await downloading;
  assert.match(download.suggestedFilename(), /\.csv$/);
  assert.match(readFileSync(await download.path(), 'utf8'), /certificate\.download.*private\.key/);
}

async function renewAndFetch({ page, open }: Person, client: Machine): Promise<void> {
  const before = installed(client).fingerprint256;
  await open('/certificates/web.example.test');
  await page.getByRole('button', { name: 'Renew now' }).click();
  const renewal = page.locator('.renewal', { hasText: 'Renewal 1' });
  await renewal.getByText('Issued version 2.').waitFor();
  await renewal.getByText('admin:alice').waitFor();
  const ended = await runJob(client);
  assert.equal(ended.code, 0, ended.stderr);
  assert.notEqual(installed(client).fingerprint256, before);
}

async function revoke(
  { url }: Visit,
  { page, open }: Person,
  client: Machine,
  rawKey: string,
): Promise<void> {
  const download = () =>
    fetch(`${url}/api/v1/certificates/web.example.test/private.key`, {
      headers: { Authorization: `Bearer ${rawKey}` },
    });
  assert.equal((await download()).status, 200);
  await open('/api-keys');
  await page.getByRole('button', { name: `Actions for ${keyName}` }).click();
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.getByText('revoked', { exact: true }).waitFor();
  assert.equal((await download()).status, 401);
  const kept = installed(client).fingerprint256;
  const ended = await runJob(client);
  assert.notEqual(ended.code, 0);
  assert.match(ended.stderr, /401: the API key is unknown, revoked or expired/);
  assert.equal(installed(client).fingerprint256, kept, 'the machine keeps its files');
  await open('/audit-log?action=access.refuse');
  await page.getByRole('listitem').filter({ hasText: keyName }).first().waitFor();
  await open('/api-keys');
  await page.getByRole('button', { name: `Actions for ${keyName}` }).click();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'No API keys yet' }).waitFor();
}

async function signOut({ url, excuse }: Visit, { context, page, open }: Person): Promise<void> {
  await open('/certificates');
  const other = await context.newPage();
  await other.goto('/account/password');
  await other.getByRole('heading', { level: 1, name: 'Change password' }).waitFor();
  const [cookie] = await context.cookies();
  assert(cookie?.httpOnly);
  // A page may send one more request before it learns that the session has ended.
  excuse(/status of 40[13]/);
  await page.getByRole('button', { name: /^alice/ }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  for (const tab of [page, other]) await tab.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  const headers = { Cookie: `${cookie.name}=${cookie.value}` };
  assert.equal((await fetch(`${url}/api/v1/session`, { headers })).status, 401);
}

/** Drops files on the page. */
async function drop(page: Page, files: Readonly<Record<string, string>>): Promise<void> {
  const transfer = await page.evaluateHandle(
    `(() => {
      const data = new DataTransfer();
      for (const [name, text] of Object.entries(${JSON.stringify(files)})) data.items.add(new File([text], name));
      return data;
    })()`,
  );
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: transfer });
}

function pkcs12(dir: string, password: string): string {
  const { fullchainPem, leaf }: Chain = makeChain(dir, { names: 'DNS:mail.example.test' });
  const file = join(dir, 'mail.p12');
  const args = ['pkcs12', '-export', '-out', file, '-passout', `pass:${password}`];
  execFileSync('openssl', args, { input: `${leaf.keyPem}${fullchainPem}` });
  return file;
}

async function namesOf(ask: Person['ask']): Promise<string[]> {
  const all = (await ask('GET', '/certificates')) as { name: string }[];
  return all.map(({ name }) => name).sort();
}

const destinationOf = ({ home }: Machine) => join(home, "it's a place");

/** The certificate on the machine, whose key must match. */
function installed(client: Machine) {
  const destination = destinationOf(client);
  assert.ok(existsSync(join(destination, 'tls.key')));
  return assertPair({ ...client, file: (name) => readFileSync(join(destination, name), 'utf8') });
}

/** Runs the cron job. */
function runJob(client: Machine) {
  const command = client.crontab().trim().split(' ').slice(5).join(' ');
  return inShell(client, command);
}

function inShell({ home, bin }: Machine, command: string) {
  const environment = {
    HOME: home,
    PATH: `${bin}:${process.env.PATH}`,
    TMPDIR: home,
    CERTIFICATE_VAULT_HOME: join(home, 'vault'),
    CERTIFICATE_VAULT_PAUSE_SECONDS: '0',
    CERTIFICATE_VAULT_FETCH_TRIES: '1',
  };
  return finish('sh', ['-c', command], { environment });
}
