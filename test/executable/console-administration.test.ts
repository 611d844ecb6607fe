/** The pages about keys, sources and people: in both colours, on phones and desks, without a complaint of anybody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleVault, signedInConsole } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';
import { goodPassword, otherPassword } from '../harness/sign-in-fixtures.ts';

const browser = needs('chromium');

const paths = [
  ...['/new-certificate', '/import', '/api-keys', '/api-keys/new', '/api-keys/1/install', '/renewals'],
  ...['/audit-log', '/issuers', '/acme-accounts', '/dns-providers', '/administrators', '/about'],
];

test('every page is accessible in both themes, and fits from 360 pixels on', browser, async (t) => {
  const vault = await consoleVault(t, ['web.example.test']);
  const scopes = ['--scope', 'certificates:read', '--scope', 'private_keys:read'];
  await vault.command('api-key', 'create', '--name', 'web-01', ...scopes, '--certificate', '*');
  const { page, open, assertAccessible } = await signedInConsole(vault);
  for (const path of paths) {
    await open(path);
    await page.waitForLoadState('load');
    await page.locator('.skeleton').waitFor({ state: 'detached' });
    for (const [colorScheme, width] of [
      ['light', 1280],
      ['dark', 360],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 800 });
      await assertAccessible(`${path}, ${colorScheme}`);
      const overhang = Number(await page.evaluate('document.documentElement.scrollWidth - innerWidth'));
      assert.ok(overhang <= 0, `${path} is ${overhang} pixels too wide for ${width}`);
    }
  }
});

test('the dialogs are accessible too', browser, async (t) => {
  const vault = await consoleVault(t);
  const { page, open, assertAccessible } = await signedInConsole(vault);
  const dialogs = [
    ['/issuers', 'Add an ACME CA'],
    ['/dns-providers', 'Add a DNS provider'],
    ['/administrators', 'Add an administrator'],
  ] as const;
  for (const [path, button] of dialogs) {
    await open(path);
    await page.getByRole('button', { name: button }).click();
    await page.getByRole('dialog').waitFor();
    if (path === '/dns-providers') await page.getByLabel('Type').selectOption('rfc2136');
    await assertAccessible(button);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});

test('an administrator is added and removed, and a DNS provider too', browser, async (t) => {
  const vault = await consoleVault(t);
  const { page, open } = await signedInConsole(vault);
  await open('/administrators');
  await page.getByText('the only one: cannot be removed').waitFor();
  await page.getByRole('button', { name: 'Add an administrator' }).click();
  await page.getByLabel('Name', { exact: true }).fill('bob');
  await page.getByLabel('Password', { exact: true }).fill(otherPassword);
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
  await page.getByRole('button', { name: 'Remove bob' }).click();
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Remove' });
  assert.ok(await confirm.isDisabled());
  await page.getByLabel('Type bob to confirm').fill('bob');
  await confirm.click();
  await page.getByText('the only one: cannot be removed').waitFor();

  await open('/dns-providers');
  await page.getByRole('button', { name: 'Add a DNS provider' }).click();
  await page.getByLabel('Type').selectOption('cloudflare');
  await page.getByLabel('Zones').fill('example.test, example.org');
  await page.getByLabel('API token').fill(goodPassword.replaceAll(' ', '-'));
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
  await page.getByText('example.test, example.org').waitFor();
  await page.getByRole('button', { name: 'Remove cloudflare' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByRole('heading', { name: 'No DNS providers yet' }).waitFor();
});
