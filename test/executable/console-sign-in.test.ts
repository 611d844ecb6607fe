/** Setup, sign-in, sign-out and sessions in a real browser against the executable. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { fillSetup, rendered, setupLink, signIn, visit } from '../harness/console/visit.ts';
import { goodPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';

const chromium = needs('chromium');

test(
  'the setup link creates the first administrator once, and its token is removed from the address bar',
  chromium,
  async (t) => {
    const { visitor, alice, url, command, expectComplaint } = await visit(t);
    const { page } = await visitor();
    await page.goto('/');
    await page.getByText('No administrator yet').waitFor();
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
    await mallory.page.goto('/');
    await mallory.page.getByLabel('Password').waitFor();
    assert.equal(await mallory.page.getByText('No administrator yet').count(), 0);
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

test(
  'signing out while a list loads ends the session after its response, sends no later reads, and rejects none',
  chromium,
  async (t) => {
    const { page, open, move } = await (await visit(t)).alice();
    // However slow the machine is, the page does not stop waiting for its list.
    const patient = '(act, after, ...values) => (after === 5000 ? 0 : wait(act, after, ...values))';
    await page.addInitScript(`{ const wait = setTimeout; globalThis.setTimeout = ${patient}; }`);
    await open('/about');
    const { held, release } = await holdReads(page, 'renewals');
    await page.getByRole('navigation').getByRole('link', { name: 'Renewals' }).click();
    await held;
    const sent: string[] = [];
    page.on('request', (request) => sent.push(`${request.method()} ${new URL(request.url()).pathname}`));
    await page.getByRole('button', { name: /^alice/ }).click();
    await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    // The person can still do something while the session ends.
    await page.evaluate(
      `history.pushState(null, '', '/issuers'); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await rendered(page);
    const requests = () => sent.filter((text) => /\/api\/v1\/(session|issuers)$/.test(text));
    assert.deepEqual(requests(), [], 'sent before the list was answered');
    release();
    await page.getByRole('heading', { level: 1, name: 'Sign in' }).waitFor();
    assert.deepEqual(requests(), ['DELETE /api/v1/session'], 'a later read was sent');
    await signIn(page);
    await move('/renewals');
    await page.getByRole('heading', { level: 1, name: 'Renewals' }).waitFor();
  },
);

test('a page goes on to load after a sign-out that failed', chromium, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page } = await alice();
  const { held, release } = await holdReads(page, 'renewals');
  await page.getByRole('navigation').getByRole('link', { name: 'Renewals' }).click();
  await held;
  expectComplaint(/status of 503/);
  const problem = { status: 503, code: 'unavailable', detail: 'The vault is busy.' };
  await page.route('**/api/v1/session', (route) =>
    route.request().method() === 'DELETE' ? route.fulfill({ status: 503, json: problem }) : route.continue(),
  );
  await page.getByRole('button', { name: /^alice/ }).click();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Issuers' }).click();
  release();
  await page.getByText('The vault is busy.').waitFor();
  await page.getByRole('rowheader', { name: 'local-ca' }).waitFor();
});

/** Holds back what reads of the list get, until `release` is called. */
async function holdReads(page: Page, list: string) {
  const { promise: held, resolve: hold } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(
    ({ pathname }) => pathname === `/api/v1/${list}`,
    async (route) => {
      hold();
      await released;
      await route.continue();
    },
  );
  return { held, release };
}
