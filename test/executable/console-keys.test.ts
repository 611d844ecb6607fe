/** The pages for API keys, beyond what console-journey.test.ts covers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

test('a key can allow any certificate, including later ones', browser, async (t) => {
  const { alice, command } = await visit(t);
  const { page, open } = await alice();
  await open('/api-keys/new');
  await page.getByLabel('Name', { exact: true }).fill('monitoring');
  await page.getByLabel('Any certificate, including ones added later').check();
  await page.getByRole('button', { name: 'Create API key' }).click();
  await page.getByText('No certificates yet that this key can download').waitFor();
  const [key] = JSON.parse(await command('api-key', 'list')) as { certificates: string[] }[];
  assert.deepEqual(key?.certificates, ['*']);
});

test('errors about a new key appear at the fields', browser, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, open } = await alice();
  await open('/api-keys/new');
  expectComplaint(/status of 400/);
  await page.getByLabel('Networks').fill('192.0.2.0/99, office');
  await page.getByRole('button', { name: 'Create API key' }).click();
  const name = page.locator('.field', { has: page.getByLabel('Name', { exact: true }) });
  await name.locator('.field-error').waitFor();
  await page
    .locator(':focus')
    .and(page.getByLabel('Name', { exact: true }))
    .waitFor();
  const certificates = page.getByRole('group', { name: 'Certificates', exact: true });
  await certificates.locator('.field-error').waitFor();
  const networks = page.locator('.field', { has: page.getByLabel('Networks') });
  const texts = await networks.locator('.field-error').innerText();
  for (const wrong of ['192.0.2.0/99', 'office']) assert.equal(texts.split(wrong).length, 2, texts);
  await page.getByText('Correct the marked fields.').waitFor();
  assert.doesNotMatch(await page.getByRole('main').innerText(), /allowed_networks/);
});

test(
  'a key is restricted to networks, and invalid installer options get errors while the person types',
  browser,
  async (t) => {
    const { alice, command } = await visit(t);
    await command('certificate', 'create', '--name', 'www', '--domain', 'www.example.test');
    const { page, open } = await alice();
    await open('/api-keys/new');
    await page.getByLabel('Name', { exact: true }).fill('web-1');
    await page.getByRole('checkbox', { name: 'www' }).check();
    await page.getByLabel('Networks').fill('192.0.2.0/24, 2001:db8::7');
    await page.getByRole('button', { name: 'Create API key' }).click();
    await page.getByText('--destination /etc/nginx/tls').waitFor();
    await page.getByLabel('File mode').fill('0999');
    await page.locator('.field-error', { hasText: 'The mode must be octal' }).waitFor();
    assert.equal(
      await page.getByLabel('Installer command').count(),
      0,
      'a command is shown despite an error',
    );
    await page.getByLabel('File mode').fill('0640');
    await page.getByText('--mode 0640').waitFor();
    await page.getByRole('link', { name: 'Done' }).click();
    await page.getByText('only from 192.0.2.0/24, 2001:db8::7').waitFor();
    await open('/certificates/www?tab=access');
    await page.getByText('only from 192.0.2.0/24, 2001:db8::7').waitFor();
  },
);

test(
  'a key is rotated: the new one is shown once, and the list says until when the old one is valid',
  browser,
  async (t) => {
    const { alice, command, server } = await visit(t);
    await command('certificate', 'create', '--name', 'www', '--domain', 'www.example.test');
    const create = ['--name', 'web-1', '--scope', 'certificates:read', '--certificate', 'www'];
    const old = (await command('api-key', 'create', ...create)).trim();
    const { page, open } = await alice();
    await open('/api-keys');
    const rotate = async () => {
      await page.getByRole('button', { name: 'Actions for web-1' }).click();
      await page.getByText('Rotate', { exact: true }).click();
      await page.getByRole('button', { name: 'Rotate', exact: true }).waitFor();
    };
    const shown = async () => {
      await page.getByRole('button', { name: 'Rotate', exact: true }).click();
      const key = await page.getByLabel('API key', { exact: true }).innerText();
      await page.getByRole('button', { name: 'Done' }).click();
      return key.trim();
    };
    await rotate();
    const next = await shown();
    await page.getByText('old key valid until').waitFor();
    assert(!(await page.content()).includes(next), 'the key is shown once');
    await rotate();
    await page.getByText('The key from before that rotation ends now').waitFor();
    await page.getByLabel('End the old key at once').check();
    const last = await shown();
    await page.getByText('old key valid until').waitFor({ state: 'detached' });
    const statuses = await Promise.all(
      [old, next, last].map(async (raw) => {
        const headers = { Authorization: `Bearer ${raw}` };
        return (await fetch(`${server.url}/api/v1/certificates/www`, { headers })).status;
      }),
    );
    assert.deepEqual(statuses, [401, 401, 200]);
  },
);

test('the menu of a key opens in a list of hundreds, wide and narrow', browser, async (t) => {
  const { alice } = await visit(t);
  const { page, ask, open } = await alice({ reducedMotion: 'reduce' });
  for (let number = 0; number < 160; number += 1) {
    await ask('POST', '/api-keys', {
      name: `web-${number}`,
      scopes: ['certificates:read'],
      certificates: ['*'],
    });
  }
  await open('/api-keys');
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 });
    await page.getByRole('button', { name: 'Actions for web-157' }).click();
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('dialog').getByRole('heading', { name: 'Revoke web-157?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  }
});
