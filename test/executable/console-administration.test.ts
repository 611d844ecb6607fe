/** The pages for administrators and DNS providers: adding and removing. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../harness/console/visit.ts';
import { goodPassword, otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

test('an administrator and a DNS provider are added and removed', browser, async (t) => {
  const { alice } = await visit(t);
  const { page, open } = await alice();
  await open('/administrators');
  await page.getByText('Last one with the role admin and a password').waitFor();
  await page.getByRole('button', { name: 'Add administrator' }).click();
  await page.getByLabel('Name', { exact: true }).fill('bob');
  await page.getByLabel('Password', { exact: true }).fill(otherPassword);
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Remove bob' }).click();
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Remove' });
  assert.ok(await confirm.isDisabled());
  await page.getByLabel('Type bob to confirm').fill('bob');
  await confirm.click();
  await page.getByText('Last one with the role admin and a password').waitFor();

  await open('/dns-providers');
  await page.getByRole('button', { name: 'Add DNS provider' }).click();
  await page.getByLabel('Type').selectOption('cloudflare');
  await page.getByLabel('Zones').fill('example.test, example.org');
  await page.getByLabel('API token').fill(goodPassword.replaceAll(' ', '-'));
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
  await page.getByText('example.test, example.org').waitFor();
  await page.getByRole('button', { name: 'Remove cloudflare' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No DNS providers yet' }).waitFor();
});
