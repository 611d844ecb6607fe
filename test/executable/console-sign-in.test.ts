/** Setting up, signing in and out, and one's sessions, in a real browser against the executable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { password, peopleAtNewVault, setupLink } from '../harness/console-people.ts';
import { needs } from '../harness/missing-program.ts';

const chromium = needs('chromium');
const refusals = /status of 40[13]/;

test(
  'the setup link makes the first administrator, once, and leaves nothing in the address bar',
  chromium,
  async (t) => {
    const { person, setUp, url, server, complaints, excuse } = await peopleAtNewVault(t);
    const alice = await person();
    const page = await alice.newPage();
    await page.goto(setupLink(server));
    assert.equal(page.url(), `${url}/setup`);
    await page.getByLabel('Name').fill('alice');
    await page.getByLabel('Password', { exact: true }).fill('short');
    await page.getByLabel('Password, once more').fill('shor');
    assert.equal(await page.getByText('This is not the same password.').count(), 0, 'it may become it');
    await page.getByLabel('Password, once more').press('Tab');
    await page.getByText('This is not the same password.').waitFor();
    await page.close();
    assert.deepEqual(complaints(), []);
    await setUp(alice);
    excuse(refusals);
    const mallory = await (await person()).newPage();
    await mallory.goto(setupLink(server));
    await mallory.getByLabel('Name').fill('mallory');
    await mallory.getByLabel('Password', { exact: true }).fill(password);
    await mallory.getByLabel('Password, once more').fill(password);
    await mallory.getByRole('button', { name: 'Set up' }).click();
    await mallory.getByRole('alert').waitFor();
    assert.deepEqual(complaints(), []);
  },
);

test(
  'signing in leads back to where one was, by keyboard alone, and a wrong password is said',
  chromium,
  async (t) => {
    const { person, setUp, url, complaints, excuse } = await peopleAtNewVault(t);
    await setUp(await person());
    const page = await (await person()).newPage();
    await page.goto(`${url}/account/sessions`);
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    assert.deepEqual(complaints(), []);
    await page.locator('input[name=username]:focus').waitFor();
    await page.keyboard.type('alice');
    await page.keyboard.press('Tab');
    await page.keyboard.type('not the password at all');
    excuse(refusals);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor();
    await page.locator('input[name=password]:focus').waitFor();
    await page.keyboard.type(password);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Your sessions' }).waitFor();
    assert.equal(new URL(page.url()).pathname, '/account/sessions');
    assert.equal(await page.getByRole('row').count(), 3, 'a head, the other session and this one');
    assert.deepEqual(complaints(), []);
  },
);

test(
  'signing out in one tab ends the other, and the cookie is worth nothing any more',
  chromium,
  async (t) => {
    const { person, setUp, url, complaints, excuse } = await peopleAtNewVault(t);
    const alice = await person();
    const page = await setUp(alice);
    const other = await alice.newPage();
    await other.goto(`${url}/account/password`);
    await other.getByRole('heading', { level: 1, name: 'Change password' }).waitFor();
    const [cookie] = await alice.cookies();
    excuse(refusals);
    await page.getByRole('button', { name: /^alice/ }).click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    for (const tab of [page, other]) {
      await tab.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    }
    assert(cookie);
    const response = await fetch(`${url}/api/v1/session`, {
      headers: { Cookie: `${cookie.name}=${cookie.value}` },
    });
    assert.equal(response.status, 401);
    assert.deepEqual(complaints(), []);
  },
);

test('a session that is ended elsewhere leads to the sign-in page by itself', chromium, async (t) => {
  const { person, setUp, complaints, excuse } = await peopleAtNewVault(t);
  const page = await setUp(await person());
  const second = await person();
  const elsewhere = await second.newPage();
  excuse(refusals);
  await elsewhere.goto('/sign-in');
  await elsewhere.getByLabel('Name').fill('alice');
  await elsewhere.getByLabel('Password').fill(password);
  await elsewhere.getByRole('button', { name: 'Sign in' }).click();
  await elsewhere.getByRole('heading', { level: 1, name: 'Certificates' }).waitFor();
  await elsewhere.getByRole('button', { name: /^alice/ }).click();
  await elsewhere.getByRole('link', { name: 'Your sessions' }).click();
  await elsewhere.getByRole('button', { name: 'End', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
  assert.deepEqual(complaints(), []);
});

test(
  'a chosen theme is there before the first paint, and the back button and the focus follow the pages',
  chromium,
  async (t) => {
    const { person, setUp, complaints } = await peopleAtNewVault(t);
    const page = await setUp(await person({ colorScheme: 'light' }));
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
    assert.deepEqual(complaints(), []);
  },
);
