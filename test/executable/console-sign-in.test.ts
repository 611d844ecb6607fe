/** Setting up, signing in and out, and one's sessions, in a real browser against the executable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fillSetup, setupLink, signIn, visit } from '../harness/console-visit.ts';
import { needs } from '../harness/missing-program.ts';
import { goodPassword } from '../harness/sign-in-fixtures.ts';

const chromium = needs('chromium');

test(
  'the setup link makes the first administrator, once, and leaves nothing in the address bar',
  chromium,
  async (t) => {
    const { visitor, alice, url, command, expectComplaint } = await visit(t);
    const { page } = await visitor();
    const link = await setupLink({ command, url });
    await page.goto(link);
    assert.equal(page.url(), `${url}/setup`);
    await page.getByLabel('Name').fill('alice');
    await page.getByLabel('Password', { exact: true }).fill('short');
    await page.getByLabel('Password, once more').fill('shor');
    assert.equal(await page.getByText('This is not the same password.').count(), 0, 'it may become it');
    await page.getByLabel('Password, once more').press('Tab');
    await page.getByText('This is not the same password.').waitFor();
    await alice();
    expectComplaint(/status of 403/);
    const mallory = await visitor();
    await mallory.page.goto(link);
    await fillSetup(mallory.page, 'mallory');
    await mallory.page.getByRole('alert').waitFor();
  },
);

test(
  'signing in leads back to where one was, by keyboard alone, and a wrong password is said',
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
    await page.getByRole('button', { name: 'End', exact: true }).waitFor();
    assert.equal(await page.getByRole('row').count(), 3, 'a head, the other session and this one');
  },
);

test('a session that is ended elsewhere leads to the sign-in page by itself', chromium, async (t) => {
  const { visitor, alice, expectComplaint } = await visit(t);
  const { page } = await alice();
  const elsewhere = await visitor();
  await elsewhere.page.goto('/sign-in');
  await signIn(elsewhere.page);
  await elsewhere.page.getByRole('button', { name: /^alice/ }).click();
  await elsewhere.page.getByRole('link', { name: 'Your sessions' }).click();
  expectComplaint(/status of 401/);
  await elsewhere.page.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
});

test(
  'a chosen theme is there before the first paint, and the back button and the focus follow the pages',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const { page } = await alice({ colorScheme: 'light' });
    const background = () => page.evaluate('getComputedStyle(document.body).backgroundColor');
    const light = await background();
    await page.getByLabel('Colours').selectOption('dark');
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
