/** The pages that import and create certificates. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeChain } from '../harness/ca/openssl-chain.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

test('PEM files are previewed and then imported', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  const chain = makeChain(tempDir(t), { names: 'DNS:shop.example.test' });
  await open('/import');
  await page.getByLabel('Files to import').setInputFiles([
    { name: 'shop.pem', mimeType: 'application/x-pem-file', buffer: Buffer.from(chain.fullchainPem) },
    { name: 'shop.key', mimeType: 'application/x-pem-file', buffer: Buffer.from(chain.leaf.keyPem) },
  ]);
  await page.getByText('included, matches the certificate').waitFor();
  assert.equal(await command('certificate', 'list', '--json'), '[]');
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'shop.example.test');
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'shop.example.test' }).waitFor();
  assert.match(await command('certificate', 'list', '--json'), /"shop\.example\.test"/);
});

test('files that the current version holds change nothing, and the page says so', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  const chain = makeChain(tempDir(t), { names: 'DNS:shop.example.test' });
  const text = `${chain.fullchainPem}${chain.leaf.keyPem}`;
  const drop = async () => {
    await open('/import');
    const file = { name: 'all.pem', mimeType: 'application/x-pem-file', buffer: Buffer.from(text) };
    await page.getByLabel('Files to import').setInputFiles([file]);
    await page.getByText('included, matches the certificate').waitFor();
    await page.getByLabel('Name', { exact: true }).fill('shop');
    await page.getByRole('button', { name: 'Import', exact: true }).click();
  };
  await drop();
  await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
  await drop();
  await page.getByRole('status').filter({ hasText: 'Version 1 of shop already holds these files' }).waitFor();
  assert.match(await command('certificate', 'list', '--json'), /"version": 1,/);
  await page.getByRole('link', { name: 'shop', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
});

test('a self-signed CA certificate is imported once it is accepted', browser, async (t) => {
  const { alice, command, expectComplaint } = await visit(t);
  const { page, open } = await alice();
  const folder = tempDir(t);
  const [key, certificate] = [join(folder, 'printer.key'), join(folder, 'printer.pem')];
  const subject = ['-subj', '/CN=printer', '-addext', 'subjectAltName=DNS:printer.example.test'];
  const args = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', ...subject];
  execFileSync('openssl', [...args, '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  await open('/import');
  await page.getByLabel('Files to import').setInputFiles([key, certificate]);
  await page.getByRole('alert').filter({ hasText: 'CA certificate' }).waitFor();
  expectComplaint(/status of 400/);
  await page.getByLabel('Accept a CA certificate').check();
  await page.getByText('included, matches the certificate').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'printer.example.test' }).waitFor();
  assert.match(await command('certificate', 'list', '--json'), /"printer\.example\.test"/);
});

test('files can be dropped, and a certificate without its key gets an error', browser, async (t) => {
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
  const args = ['pkcs12', '-export', '-out', file, '-passout', 'pass:open sesame'];
  execFileSync('openssl', args, { input: `${leaf.keyPem}${fullchainPem}` });
  await open('/import');
  await page.getByLabel('Files to import').setInputFiles(file);
  await page.getByText('protected by a password').first().waitFor();
  expectComplaint(/status of 400/);
  await page.getByLabel('Password of the PKCS#12 file').fill('open sesame');
  await page.getByText('included, matches the certificate').waitFor();
  await page.getByRole('button', { name: 'Import', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'shop.example.test' }).waitFor();
});

test(
  'an import under the name of another certificate shows both, and asks about lost domains',
  browser,
  async (t) => {
    const { alice, command } = await visit(t);
    const { page, open, createCertificates } = await alice();
    await createCertificates('renewed.example.test');
    const imported = (label: string, names: string) => {
      const { leaf, fullchainPath } = makeChain(tempDir(t), { label, names });
      return { files: [fullchainPath, leaf.keyPath], fullchainPath, keyPath: leaf.keyPath };
    };
    const old = imported('Old', 'DNS:shop.example.test,DNS:mail.example.test');
    const files = ['--fullchain', old.fullchainPath, '--private-key', old.keyPath];
    await command('certificate', 'import', '--name', 'shop', ...files);
    await open('/import');
    const { files: next } = imported('New', 'DNS:*.example.test,DNS:cart.shop.example.test');
    await page.getByLabel('Files to import').setInputFiles(next);
    const name = page.getByLabel('Name', { exact: true });
    const button = page.getByRole('button', { name: /^(Import|Replace version 1)$/ });
    await name.fill('renewed.example.test');
    await page.getByText('is renewed by local-ca; choose another name').waitFor();
    assert.ok(await button.isDisabled());
    await name.fill('shop');
    const comparison = page.getByRole('region', { name: 'Comparison' });
    await comparison.getByText('cart.shop.example.test added').waitFor();
    assert.equal(await comparison.getByText('lost').count(), 0, 'the wildcard covers both');
    await page.getByRole('button', { name: 'Replace version 1' }).click();
    await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
    await open('/import');
    await page.getByLabel('Files to import').setInputFiles(imported('Other', 'DNS:mail.example.test').files);
    await name.fill('shop');
    await comparison.getByText('cart.shop.example.test lost').waitFor();
    const replace = page.getByRole('button', { name: 'Replace version 2' });
    assert.ok(await replace.isDisabled());
    await page.getByLabel('2 domains are no longer needed').check();
    await replace.click();
    await page.getByRole('heading', { level: 1, name: 'shop' }).waitFor();
    assert.match(await command('certificate', 'show', '--name', 'shop', '--json'), /"version":\s*3/);
  },
);

test(
  'the form validates a new certificate while the person types, and the private CA issues it immediately',
  browser,
  async (t) => {
    const { alice, command } = await visit(t);
    const { page, open } = await alice();
    await open('/new-certificate');
    await page.getByLabel('Domains').fill('*.example.test no_domain');
    await page.getByText('"no_domain" is not a domain').waitFor();
    await page.getByLabel('Domains').fill('*.example.test\nexample.test');
    await page.getByText('issues wildcards without validation').waitFor();
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'wildcard.example.test');
    await page.getByLabel('Lifetime').fill('30 days');
    await page.getByText('"30 days" is not a lifetime').waitFor();
    await page.getByLabel('Lifetime').fill('30d');
    await page.getByLabel('Key type').selectOption('ec384');
    await page.getByRole('button', { name: 'Create certificate' }).click();
    await page.getByRole('heading', { level: 1, name: 'wildcard.example.test' }).waitFor();
    const shown = await command('certificate', 'show', '--name', 'wildcard.example.test', '--json');
    assert.match(shown, /"key_type":\s*"ec384"/);
    await open('/new-certificate');
    await page.getByLabel('Domains').fill('*.example.test');
    await page.getByText('a certificate named "wildcard.example.test" already exists').waitFor();
    await page.getByRole('button', { name: 'Create certificate' }).click();
    await page.getByLabel('Name', { exact: true }).and(page.locator(':focus')).waitFor();
    await page.getByLabel('Name', { exact: true }).fill('wildcard.example.tes');
    await page.getByText('already exists').waitFor({ state: 'detached' });
  },
);
