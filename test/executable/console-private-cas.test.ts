/**
 * Private CAs in the console: added with constraints, edited and removed, with the errors of the vault at their fields.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';

type Issuer = { readonly name: string; readonly private_ca: Record<string, unknown> | null };

test(
  'a private CA is added by keyboard, used, edited against the names of its certificates, and removed',
  needs('chromium'),
  async (t) => {
    const there = await visit(t);
    const { page, open, ask } = await there.alice({ reducedMotion: 'reduce' });
    const settings = async (name: string) =>
      ((await ask('GET', '/issuers')) as Issuer[]).find((issuer) => issuer.name === name)?.private_ca;
    const dialog = page.getByRole('dialog');
    const type = (text: string) => page.keyboard.type(text);
    const press = async (...keys: readonly string[]) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const isFocused = (label: string) =>
      dialog.getByLabel(label, { exact: true }).and(page.locator(':focus')).waitFor();
    const act = async (name: string, item: string) => {
      await page.getByRole('button', { name: `Actions for ${name}` }).click();
      await page.getByRole('button', { name: item, exact: true }).click();
    };

    await open('/issuers');
    await page.getByRole('button', { name: 'Add private CA' }).focus();
    await press('Enter');
    await isFocused('Name');
    await type('staging ca');
    await press('Tab');
    await isFocused('Permitted domains');
    await type('*.staging.example');
    await press('Tab');
    await isFocused('Permitted networks');
    await type('10.0.0.0/33');
    await press('Tab');
    await isFocused('Default lifetime');
    await type('1 day');
    there.expectComplaint(/status of 400.*issuers/);
    await press('Enter');
    const errors = [
      ['Name', /letters, digits, dots/],
      ['Permitted domains', /"\*\.staging\.example" is not a domain such as example\.com/],
      ['Permitted networks', /"10\.0\.0\.0\/33" is not a network/],
      ['Default lifetime', /is not a lifetime/],
    ] as const;
    for (const [label, message] of errors) {
      const field = dialog.locator('.field').filter({ has: page.getByLabel(label, { exact: true }) });
      await field.getByRole('alert').filter({ hasText: message }).waitFor();
      assert.equal(await dialog.getByLabel(label, { exact: true }).getAttribute('aria-invalid'), 'true');
    }
    await dialog.getByLabel('Name', { exact: true }).fill('staging-ca');
    await dialog.getByLabel('Permitted domains').fill('staging.example\ntest.example');
    await dialog.getByLabel('Permitted networks').fill('10.0.0.0/8');
    await dialog.getByLabel('Default lifetime').fill('30d');
    await dialog.getByLabel('Default key type').selectOption('ec384');
    await dialog.getByText('Root certificate').click();
    await dialog.getByLabel('Common name').fill('Staging Root');
    await dialog.getByRole('button', { name: 'Add' }).click();
    const row = page.getByRole('row').filter({ hasText: 'staging-ca' });
    await row.getByText('permits only staging.example, test.example, 10.0.0.0/8').waitFor();
    assert.deepEqual(await settings('staging-ca'), {
      common_name: 'Staging Root',
      permit_domains: ['staging.example', 'test.example'],
      permit_ips: ['10.0.0.0/8'],
      path_length: 1,
      lifetime: '30d',
      key_type: 'ec384',
    });
    const path = await row.getByRole('link', { name: 'Download root certificate' }).getAttribute('href');
    const root = new X509Certificate(await (await fetch(`${there.url}${path}`)).text());
    assert.equal(root.subject, 'CN=Staging Root');

    await ask('POST', '/certificates', {
      name: 'shop',
      domains: ['shop.test.example'],
      issuer: 'staging-ca',
    });
    await act('staging-ca', 'Edit');
    await dialog.getByLabel('Permitted domains').fill('staging.example');
    there.expectComplaint(/status of 400.*issuers/);
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.locator('.field-error').getByText('have other names: shop (shop.test.example)').waitFor();
    await dialog.getByLabel('Let renewals of certificates with other names fail').check();
    await dialog.getByRole('button', { name: 'Save' }).click();
    await row.getByText('permits only staging.example, 10.0.0.0/8').waitFor();

    await act('staging-ca', 'Remove');
    await dialog.getByText('This destroys the keys and revocation lists of the CA.').waitFor();
    there.expectComplaint(/status of 4\d\d.*issuers/);
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await dialog.getByText(/shop/).waitFor();
    await press('Escape');
    await ask('DELETE', '/certificates/shop');
    await act('staging-ca', 'Remove');
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await row.waitFor({ state: 'detached' });
    assert.equal(await settings('staging-ca'), undefined);

    // The CA that every vault has can be confined, and not removed.
    await page.getByRole('button', { name: 'Actions for local-ca' }).click();
    await page.getByRole('button', { name: 'Edit', exact: true }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'Remove', exact: true }).count(), 0);
  },
);
