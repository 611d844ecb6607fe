/** Setup, sign-in, sign-out and sessions in a real browser against the executable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSetup, setupLink, signIn, visit } from '../harness/console/visit.ts';
import { goodPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';

const chromium = needs('chromium');

test(
  'the setup link creates the first administrator once, and its token is removed from the address bar',
  chromium,
  async (t) => {
    const { visitor, alice, url, command, expectComplaint } = await visit(t);
    const { page } = await visitor();
    const link = await setupLink({ command, url });
    await page.goto(link);
    assert.equal(page.url(), `${url}/setup`);
    await page.getByLabel('Name').fill('alice');
    await page.getByLabel('Password', { exact: true }).fill('short');
    await page.getByLabel('Confirm password').fill('shor');
    assert.equal(
      await page.getByText('The passwords do not match.').count(),
      0,
      'the person may still be typing',
    );
    await page.getByLabel('Confirm password').press('Tab');
    await page.getByText('The passwords do not match.').waitFor();
    await alice();
    expectComplaint(/status of 403/);
    const mallory = await visitor();
    await mallory.page.goto(link);
    await fillSetup(mallory.page, 'mallory');
    await mallory.page.getByRole('alert').waitFor();
  },
);

test(
  'sign-in returns to the requested page, by keyboard alone, and reports a wrong password',
  chromium,
  async (t) => {
    const { visitor, alice, expectComplaint } = await visit(t);
    await alice();
    const { page } = await visitor();
    await page.goto('/account/sessions');
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    await page.locator('input[name=username]:focus').waitFor();
    await page.keyboard.type('alice');
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password at all');
    expectComplaint(/status of 401/);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await page.locator('input[name=password]:focus').waitFor();
    await page.keyboard.type(goodPassword);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Your sessions' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/account/sessions');
    await page.getByRole('button', { name: 'End session', exact: true }).waitFor();
    assert.equal(await page.getByRole('row').count(), 3, 'the header, the other session and this one');
  },
);

test('ending a session in another browser shows the sign-in page', chromium, async (t) => {
  const { visitor, alice, expectComplaint } = await visit(t);
  const { page } = await alice();
  const otherBrowser = await visitor();
  await otherBrowser.page.goto('/sign-in');
  await signIn(otherBrowser.page);
  await otherBrowser.page.getByRole('button', { name: /^alice/ }).click();
  await otherBrowser.page.getByRole('link', { name: 'Your sessions' }).click();
  expectComplaint(/status of 401/);
  await otherBrowser.page.getByRole('button', { name: 'End session', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
});

test(
  'the selected theme applies before the first paint, and the back button and the focus follow navigation',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const { page } = await alice({ colorScheme: 'light' });
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.getByLabel('Theme').selectOption('dark');
    assert.notEqual(await background(), light);
    await page.reload({ waitUntil: 'commit' });
    await page.locator('html[data-theme=dark]').waitFor({ state: 'attached' });
    await page.getByRole('button', { name: /^alice/ }).click();
    await page.getByRole('link', { name: 'Change password' }).click();
    await page.getByRole('heading', { level: 1, name: 'Change password' }).waitFor();
    assert.equal(await page.evaluate('document.activeElement.textContent'), 'Change password');
    assert.equal(await page.title(), 'Change password · Certificate Vault');
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
  },
);
