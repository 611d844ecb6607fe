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
  await page.locator('.field-error', { hasText: 'a name is needed' }).waitFor();
  await page.locator('.field-error', { hasText: 'at least one certificate name is needed' }).waitFor();
});
