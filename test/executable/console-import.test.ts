/** Certificates that come from elsewhere, and such that the vault makes, by the pages of the console. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { visit } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';
import { makeChain } from '../harness/openssl-chain.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

test('PEM files are shown as they were understood, and stored then', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  const chain = makeChain(tempDir(t), { names: 'DNS:shop.example.test' });
  await open('/import');
  await page.getByLabel('Files to import').setInputFiles([
    { name: 'shop.pem', mimeType: 'application/x-pem-file', buffer: Buffer.from(chain.fullchainPem) },
    { name: 'shop.key', mimeType: 'application/x-pem-file', buffer: Buffer.from(chain.leaf.keyPem) },
  ]);
  await page.getByText('the private key is there and belongs to it').waitFor();
  assert.equal(await command('certificate', 'list', '--json'), '[]');
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'shop.example.test');
  await page.getByRole('button', { name: 'Store it' }).click();
  await page.getByRole('heading', { level: 1, name: 'shop.example.test' }).waitFor();
  assert.match(await command('certificate', 'list', '--json'), /"shop\.example\.test"/);
});

test('files can be dropped, and a certificate without its key is explained', browser, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, open } = await alice();
  const chain = makeChain(tempDir(t), { names: 'DNS:shop.example.test' });
  await open('/import');
  const pem = JSON.stringify(chain.fullchainPem);
  const transfer = await page.evaluateHandle(
    `(() => {
      const data = new DataTransfer();
      data.items.add(new File([${pem}], 'alone.pem'));
      return data;
    })()`,
  );
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: transfer });
  await page.getByRole('alert').filter({ hasText: 'private key' }).waitFor();
  expectComplaint(/status of 400/);
  await page.getByRole('button', { name: 'Remove alone.pem' }).click();
  await page.getByRole('alert').waitFor({ state: 'detached' });
});

test('a PKCS#12 file opens with its password', browser, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, open } = await alice();
  const folder = tempDir(t);
  const { fullchainPem, leaf } = makeChain(folder, { names: 'DNS:shop.example.test' });
  const file = join(folder, 'shop.p12');
  const words = ['pkcs12', '-export', '-out', file, '-passout', 'pass:open sesame'];
  execFileSync('openssl', words, { input: `${leaf.keyPem}${fullchainPem}` });
  await open('/import');
  await page.getByLabel('Files to import').setInputFiles(file);
  await page.getByText('opens only with its password').first().waitFor();
  expectComplaint(/status of 400/);
  await page.getByLabel('Password of the PKCS#12 file').fill('open sesame');
  await page.getByText('the private key is there and belongs to it').waitFor();
  await page.getByRole('button', { name: 'Store it' }).click();
  await page.getByRole('heading', { level: 1, name: 'shop.example.test' }).waitFor();
});

test('a new certificate is checked as one types, and made by the private CA at once', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  await open('/new-certificate');
  await page.getByLabel('Domains').fill('*.example.test no_domain');
  await page.getByText('"no_domain" is not a domain').waitFor();
  await page.getByLabel('Domains').fill('*.example.test\nexample.test');
  await page.getByText('makes wildcards without any proof').waitFor();
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'wildcard.example.test');
  await page.getByLabel('Lifetime').fill('30 days');
  await page.getByText('"30 days" is not a lifetime').waitFor();
  await page.getByLabel('Lifetime').fill('30d');
  await page.getByLabel('Key type').selectOption('ec384');
  await page.getByRole('button', { name: 'Make the certificate' }).click();
  await page.getByRole('heading', { level: 1, name: 'wildcard.example.test' }).waitFor();
  const shown = await command('certificate', 'show', '--name', 'wildcard.example.test', '--json');
  assert.match(shown, /"key_type":\s*"ec384"/);
  await open('/new-certificate');
  await page.getByLabel('Domains').fill('*.example.test');
  await page.getByText('a certificate called "wildcard.example.test" exists already').waitFor();
  await page.getByRole('button', { name: 'Make the certificate' }).click();
  await page.getByLabel('Name', { exact: true }).and(page.locator(':focus')).waitFor();
  await page.getByLabel('Name', { exact: true }).fill('wildcard.example.tes');
  await page.getByText('exists already').waitFor({ state: 'detached' });
});
