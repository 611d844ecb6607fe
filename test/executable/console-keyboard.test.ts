/** The console by keyboard alone: creating a certificate and a key, menus, deleting, and finding a host. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { certificateReceiver } from '../harness/console/certificate-receiver.ts';
import { reporter } from '../harness/console/reports.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';

const chromium = needs('chromium');

/** The focused element: the label of a field, or the text of a link or button. */
const focused = `(() => {
  const at = document.activeElement;
  const text = at.getAttribute('aria-label') ?? at.labels?.[0]?.textContent ?? at.textContent;
  return (text ?? '').trim();
})()`;

/**
 * Presses Tab until the element with this name has the focus. Fails if it is not reached or its focus is not visible.
 */
async function tabTo(page: Page, name: string): Promise<void> {
  const passed: string[] = [];
  while (passed.length < 60) {
    await page.keyboard.press('Tab');
    const here = String(await page.evaluate(focused));
    if (here === name) {
      assert.equal(await page.evaluate(`document.activeElement.matches(':focus-visible')`), true, name);
      return;
    }
    passed.push(here);
  }
  assert.fail(`Tab does not reach ${name}: ${passed.join(' · ')}`);
}

test(
  'a certificate and a key are created, and a certificate is deleted, by keyboard alone',
  chromium,
  async (t) => {
    const { alice, excuse } = await visit(t);
    const { page, ask, settled } = await alice();
    const type = (text: string) => page.keyboard.type(text);
    const press = (key: string) => page.keyboard.press(key);
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();

    const focusReturnsTo = (name: string) =>
      page.getByRole('button', { name }).and(page.locator(':focus')).waitFor();

    await tabTo(page, 'Create certificate');
    await press('Enter');
    await heading('Create certificate');
    await settled();
    await tabTo(page, 'Domains');
    await type('keys.example.test');
    await tabTo(page, 'Create certificate');
    await press('Enter');
    await heading('keys.example.test');

    await page.keyboard.press('Control+Home');
    await tabTo(page, 'API keys');
    await press('Enter');
    await heading('API keys');
    await settled();
    await tabTo(page, 'Create API key');
    await press('Enter');
    await heading('Create API key');
    await settled();
    await tabTo(page, 'Name');
    await type('web-1');
    await tabTo(page, 'keys.example.test');
    await press('Space');
    await tabTo(page, 'Create API key');
    await press('Enter');
    await page.getByText('The key is shown only once').waitFor();
    const [key] = (await ask('GET', '/api-keys')) as { name: string; certificates: string[] }[];
    assert.deepEqual([key?.name, key?.certificates], ['web-1', ['keys.example.test']]);

    await tabTo(page, 'Done');
    await press('Enter');
    await heading('API keys');
    await settled();
    await tabTo(page, 'Actions for web-1');
    await press('Enter');
    await page.getByRole('button', { name: 'Revoke' }).waitFor();
    await press('Escape');
    await page.getByRole('button', { name: 'Revoke' }).waitFor({ state: 'hidden' });
    await focusReturnsTo('Actions for web-1');

    await tabTo(page, 'Certificates');
    await press('Enter');
    await heading('Certificates');
    await settled();
    await tabTo(page, 'keys.example.test');
    await press('Enter');
    await heading('keys.example.test');
    await settled();
    await tabTo(page, 'More actions for this certificate');
    await press('Space');
    await tabTo(page, 'Delete…');
    await press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.waitFor();
    await press('Escape');
    await dialog.waitFor({ state: 'detached' });
    await focusReturnsTo('More actions for this certificate');
    await press('Enter');
    await tabTo(page, 'Delete…');
    await press('Enter');
    await tabTo(page, 'Type keys.example.test to confirm');
    await type('keys.example.test');
    // An API key still lists the certificate; the dialog offers to remove it from the allowlist.
    excuse(/status of 409/);
    await press('Enter');
    await dialog.getByRole('alert').waitFor();
    await tabTo(page, 'Delete the certificate anyway, and remove it from the allowlists of API keys');
    await press('Space');
    await tabTo(page, 'Delete');
    await press('Enter');
    await page.getByRole('heading', { name: 'No certificates yet' }).waitFor();
    assert.deepEqual(await ask('GET', '/certificates'), []);
  },
);

test(
  'a host is found, and from it the certificate that would break, by keyboard alone',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const person = await alice();
    const { page, settled, createCertificates } = person;
    const press = (key: string) => page.keyboard.press(key);
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
    await createCertificates('keys.example.test');
    const report = await reporter(person, 'clients');
    await report('keys.example.test', 'web1');
    await report('keys.example.test', 'web2', { reload: { result: 'failed', output: 'no such unit' } });
    await tabTo(page, 'Fleet');
    await press('Enter');
    await heading('Fleet');
    await page.getByRole('link', { name: 'web2' }).waitFor();
    await tabTo(page, 'Search');
    await page.keyboard.type('keys');
    await tabTo(page, 'State');
    await page.keyboard.type('failing');
    await page.getByText('1 of 2 hosts match.').waitFor();
    await tabTo(page, 'web2');
    await press('Enter');
    await heading('web2');
    await settled();
    await tabTo(page, 'keys.example.test');
    await press('Enter');
    await page.getByText('2 hosts would break if this certificate expired now').waitFor();
    await press('Control+Home');
    await tabTo(page, 'Deployments');
    await press('ArrowLeft');
    await page.getByRole('tab', { name: 'Versions', selected: true }).waitFor();
    await press('ArrowRight');
    await page.getByRole('tab', { name: 'Deployments', selected: true }).waitFor();
    await tabTo(page, 'web1');
    await press('Enter');
    await heading('web1');
  },
);

test(
  'an endpoint is added, opened, changed and removed, and an enrollment is revoked, by keyboard alone',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const { page, ask, settled } = await alice();
    const press = (key: string) => page.keyboard.press(key);
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
    const dialog = page.getByRole('dialog');
    await tabTo(page, 'Fleet');
    await press('Enter');
    await heading('Fleet');
    await settled();
    await tabTo(page, 'Hosts');
    await press('ArrowRight');
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    await tabTo(page, 'Add endpoint');
    await press('Enter');
    await dialog.waitFor();
    await page.keyboard.type('127.0.0.1:1');
    await press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: '127.0.0.1:1' }).waitFor();
    await press('Control+Home');
    await tabTo(page, '127.0.0.1:1');
    await press('Enter');
    await heading('127.0.0.1:1');
    await tabTo(page, 'Check now');
    await press('Enter');
    await page.locator('.page-title').getByText('unreachable').waitFor();
    await tabTo(page, 'More actions for this endpoint');
    await press('Space');
    await tabTo(page, 'Edit…');
    await press('Enter');
    await tabTo(page, 'Check every');
    await press('Control+A');
    await page.keyboard.type('2h');
    await press('Enter');
    await page.getByText('2h', { exact: true }).waitFor();
    await page.getByRole('button', { name: /^More/ }).and(page.locator(':focus')).waitFor();
    await press('Space');
    await tabTo(page, 'Remove…');
    await press('Enter');
    await tabTo(page, 'Remove');
    await press('Enter');
    await page.getByRole('heading', { name: 'No endpoints yet' }).waitFor();
    const expires_at = new Date(Date.now() + 3_600_000).toISOString();
    await ask('POST', '/enrollments', { name: 'rack-4', certificates: ['*'], expires_at });
    await tabTo(page, 'API keys');
    await press('Enter');
    await heading('API keys');
    await settled();
    await tabTo(page, 'Keys');
    await press('End');
    await page.getByRole('tab', { name: 'Enrollments', selected: true }).waitFor();
    await tabTo(page, 'Actions for rack-4');
    await press('Enter');
    await tabTo(page, 'Revoke');
    await press('Enter');
    await dialog.waitFor();
    await tabTo(page, 'Revoke');
    await press('Enter');
    await page.getByRole('cell', { name: 'revoked' }).waitFor();
  },
);

test(
  'a deploy target is added, gets a certificate, installs it and is removed, by keyboard alone',
  chromium,
  async (t) => {
    const { settings, respondWith, received } = await certificateReceiver(t);
    const { alice, excuse } = await visit(t);
    const { page, settled, createCertificates } = await alice();
    const press = (key: string) => page.keyboard.press(key);
    const type = (text: string) => page.keyboard.type(text);
    const heading = (name: string) => page.getByRole('heading', { level: 1, name }).waitFor();
    const dialog = page.getByRole('dialog');
    await createCertificates('keys.example.test');
    respondWith(503);
    excuse(/status of 502/);
    await tabTo(page, 'Deploy targets');
    await press('Enter');
    await heading('Deploy targets');
    await settled();
    await tabTo(page, 'Add deploy target');
    await press('Enter');
    await dialog.getByRole('option', { name: /^webhook/ }).waitFor({ state: 'attached' });
    await type('webhook');
    await tabTo(page, 'Name');
    await press('Control+A');
    await type('balancer');
    await tabTo(page, 'URL');
    await type(settings.url);
    await tabTo(page, 'Secret');
    await type(settings.secret);
    await press('Enter');
    await heading('balancer');
    await settled();
    await tabTo(page, 'Select certificates');
    await press('Enter');
    await tabTo(page, 'keys.example.test');
    await press('Space');
    await tabTo(page, 'Save');
    await press('Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Select certificates' }).and(page.locator(':focus')).waitFor();
    await page.getByText('503 Service Unavailable').waitFor();
    await tabTo(page, 'Install now: keys.example.test');
    await press('Enter');
    await dialog.getByRole('alert').waitFor();
    respondWith(204);
    await tabTo(page, 'Retry');
    await press('Enter');
    await dialog.getByText('Version 1 is installed.').waitFor();
    await tabTo(page, 'Close');
    await press('Enter');
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(received(), ['keys.example.test 1']);
    await press('Control+Home');
    await tabTo(page, 'More actions for this target');
    await press('Space');
    await tabTo(page, 'Remove…');
    await press('Enter');
    await tabTo(page, 'Remove');
    await press('Enter');
    await page.getByRole('heading', { name: 'No deploy targets yet' }).waitFor();
  },
);

test('Tab stays inside a dialog', chromium, async (t) => {
  const { alice } = await visit(t);
  const { page, open } = await alice();
  await open('/administrators');
  await tabTo(page, 'Add administrator');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  for (let step = 0; step < 12; step += 1) {
    await page.keyboard.press('Tab');
    const isInside = await page.evaluate(
      `document.activeElement === document.body || document.activeElement.closest('dialog') !== null`,
    );
    assert.equal(isInside, true, `after ${step + 1} steps: ${await page.evaluate(focused)}`);
  }
});
