/**
 * The pages for ACME clients: errors, creation with the lines of each program, rotation, revocation, all by keyboard or
 * mouse.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { acmeRecipes } from '../../src/base/acme-recipes.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';

const browser = needs('chromium');

type Client = {
  readonly name: string;
  readonly kid: string;
  readonly state: string;
  readonly domains: string[];
};

test(
  'an ACME client is created, set up, rotated, revoked and deleted, and its key is shown once',
  browser,
  async (t) => {
    const { alice, command, expectComplaint } = await visit(t);
    const { page, open } = await alice();
    const clients = async () => JSON.parse(await command('acme-client', 'list', '--json')) as Client[];
    await open('/acme-clients');
    await page.getByText('No ACME clients yet').waitFor();
    await page.getByRole('link', { name: 'Create ACME client' }).press('Enter');

    expectComplaint(/status of 400/);
    await page.getByLabel('Name', { exact: true }).fill('caddy');
    await page.getByLabel('Names it may order').fill('*.example.test\nwww.*.test');
    await page.getByRole('button', { name: 'Create ACME client' }).press('Enter');
    await page.locator('.field-error', { hasText: 'has "*" in the middle' }).waitFor();
    assert.deepEqual(await clients(), []);

    await page.getByLabel('Names it may order').fill('*.example.test');
    await page.getByRole('checkbox', { name: 'dns-01' }).press('Space');
    await page.getByRole('button', { name: 'Create ACME client' }).press('Enter');
    const key = (await page.getByLabel('HMAC key', { exact: true }).innerText()).trim();
    assert.match(key, /^[\w-]{43}$/);
    const [created] = await clients();
    assert.deepEqual([created?.name, created?.domains], ['caddy', ['*.example.test']]);
    const tabs = page.getByRole('tab');
    assert.equal(await tabs.count(), Object.keys(acmeRecipes).length);
    await tabs.first().focus();
    for (const { title } of Object.values(acmeRecipes)) {
      const lines = await page.getByLabel(`Lines for ${title}`, { exact: true }).innerText();
      for (const part of ['/acme/local-ca/directory', created?.kid ?? '?', key]) {
        assert(lines.includes(part), `${title}: ${lines}`);
      }
      await page.keyboard.press('ArrowRight');
    }
    await page.getByRole('link', { name: 'Done' }).click();

    const actions = async (item: string) => {
      await page.getByRole('button', { name: 'Actions for caddy' }).click();
      await page.getByText(item, { exact: true }).click();
    };
    await actions('Show setup');
    await page.getByText('mac_key HMAC_KEY').waitFor();
    assert(!(await page.content()).includes(key), 'the key is shown once');
    await page.getByRole('link', { name: 'View all ACME clients' }).click();
    await actions('Rotate');
    await page.getByRole('button', { name: 'Rotate', exact: true }).click();
    const next = (await page.getByLabel('HMAC key', { exact: true }).innerText()).trim();
    assert.notEqual(next, key);
    await page.getByRole('button', { name: 'Done' }).click();
    const [rotated] = await clients();
    assert.notEqual(rotated?.kid, created?.kid);
    await page.getByText(rotated?.kid ?? '?').waitFor();
    await actions('Revoke');
    await page.getByRole('button', { name: 'Revoke', exact: true }).click();
    await page.getByText(/^revoked$/i).waitFor();
    assert.equal((await clients())[0]?.state, 'revoked');
    await actions('Delete');
    await page.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('No ACME clients yet').waitFor();
    assert.deepEqual(await clients(), []);
  },
);
