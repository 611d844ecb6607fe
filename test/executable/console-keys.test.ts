/** API keys on the pages of the console, beside what console-journey.test.ts does with one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';

const browser = needs('chromium');

test('a key for any certificate says that it also covers later ones', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  await open('/api-keys/new');
  await page.getByLabel('Name', { exact: true }).fill('monitoring');
  await page.getByLabel('Any certificate, also those that are added later').check();
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.getByText('There is no certificate yet').waitFor();
  const [key] = JSON.parse(await command('api-key', 'list')) as { certificates: string[] }[];
  assert.deepEqual(key?.certificates, ['*']);
});

test('what the vault refuses of a new key stands at the fields', browser, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, open } = await alice();
  await open('/api-keys/new');
  expectComplaint(/status of 400/);
  await page.getByRole('button', { name: 'Make the key' }).click();
  await page.locator('.field-error', { hasText: 'name is missing' }).waitFor();
  await page.locator('.field-error', { hasText: 'at least one certificate name is required' }).waitFor();
});

test(
  'a key is bound to networks, and what the installer would refuse is marked while one types',
  browser,
  async (t) => {
    const { alice, command } = await visit(t);
    await command('certificate', 'create', '--name', 'www', '--domain', 'www.example.test');
    const { page, open } = await alice();
    await open('/api-keys/new');
    await page.getByLabel('Name', { exact: true }).fill('web-1');
    await page.getByRole('checkbox', { name: 'www' }).check();
    await page.getByLabel('Networks').fill('192.0.2.0/24, 2001:db8::7');
    await page.getByRole('button', { name: 'Make the key' }).click();
    await page.getByText('--destination /etc/nginx/tls').waitFor();
    await page.getByLabel('Mode of the files').fill('0999');
    await page.locator('.field-error', { hasText: 'Write an octal mode' }).waitFor();
    assert.equal(await page.getByLabel('The installer command').count(), 0, 'what is refused is not offered');
    await page.getByLabel('Mode of the files').fill('0640');
    await page.getByText('--mode 0640').waitFor();
    await page.getByRole('link', { name: 'Done' }).click();
    await page.getByText('only from 192.0.2.0/24, 2001:db8::7').waitFor();
    await open('/certificates/www?tab=access');
    await page.getByText('only from 192.0.2.0/24, 2001:db8::7').waitFor();
  },
);
