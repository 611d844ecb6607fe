/** Certificates in a real browser against the executable: the list, the page of one, and its actions. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Secret } from '../../src/base/secret.ts';
import { readPkcs12 } from '../../src/crypto/bundles/pkcs12.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { tempDir } from '../harness/temp-dir.ts';

const chromium = needs('chromium');

test(
  'certificates that the API creates appear live, and search and filters are kept in the URL',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const { page, createCertificates } = await alice();
    await page.getByRole('heading', { name: 'No certificates yet' }).waitFor();
    await createCertificates('www', 'mail.example.com', 'db');
    await page.getByRole('button', { name: 'Healthy 3', exact: true }).waitFor();
    await page.getByRole('img', { name: /Lifetimes of 3 certificates: 0 broken/ }).waitFor();
    await page.getByLabel('Search').fill('mail.exam');
    await page.getByText('1 of 3 certificates match.').waitFor();
    await page.getByLabel('Status').selectOption('valid');
    assert.equal(new URL(page.url()).search, '?search=mail.exam&status=valid');
    await page.reload();
    await page.getByText('1 of 3 certificates match.').waitFor();
    await page.getByRole('row').getByRole('link', { name: 'mail.example.com' }).click();
    await page.getByRole('heading', { level: 1, name: 'mail.example.com' }).waitFor();
    await page.goBack();
    await page.getByText('1 of 3 certificates match.').waitFor();
    await page.getByLabel('Search').fill('nowhere');
    await page.getByRole('button', { name: 'Show all' }).click();
    assert.equal(await page.getByRole('row').count(), 4);
  },
);

test('pages poll if server-sent events are blocked', chromium, async (t) => {
  const { alice, command, excuse } = await visit(t);
  const { context, page, open } = await alice();
  let refused = 0;
  await context.route('**/api/v1/events', (route) => {
    refused += 1;
    return route.abort();
  });
  excuse(/ERR_FAILED/);
  await open('/certificates');
  await page.getByRole('heading', { name: 'No certificates yet' }).waitFor();
  // The page may load the first when it notices that events fail; it finds the second by polling.
  for (const name of ['first', 'second']) {
    await command('certificate', 'create', '--name', name, '--domain', `${name}.example.test`);
    await page.getByRole('row').getByRole('link', { name }).waitFor();
  }
  assert.ok(refused > 0, 'events were not blocked');
});

test(
  'the about page shows the age of the last backup, and the command for the first one',
  chromium,
  async (t) => {
    const { alice, command } = await visit(t);
    const { page, open } = await alice();
    await open('/about');
    await page.getByText('No backups yet').waitFor();
    await command('backup', join(tempDir(t), 'vault.backup'));
    await open('/about');
    await page.getByText('Last backup:').waitFor();
    assert.equal(await page.getByText('No backups yet').count(), 0);
  },
);

test(
  'a certificate is renewed, downloaded, disabled and deleted from its page, and restored',
  chromium,
  async (t) => {
    const { alice, expectComplaint } = await visit(t);
    const { page, open, createCertificates, ask } = await alice();
    await createCertificates('www');
    await ask('POST', '/api-keys', {
      name: 'web-1',
      scopes: ['certificates:read'],
      certificates: ['www'],
    });
    await open('/certificates/www');
    await page.getByRole('button', { name: 'Renew now' }).click();
    await page.getByText('Issued version 2.').waitFor();
    const downloading = page.waitForEvent('download');
    await page.getByRole('link', { name: 'fullchain.crt' }).click();
    const download = await downloading;
    assert.equal(download.suggestedFilename(), 'www-fullchain.crt');
    assert.match(readFileSync(await download.path(), 'utf8'), /^-----BEGIN CERTIFICATE-----/);

    await page.getByRole('button', { name: 'keystore.p12' }).click();
    const asking = page.getByRole('dialog', { name: 'Download the keystore of www' });
    await asking.getByLabel('Keystore password', { exact: true }).fill('grüße 🔑');
    await asking.getByLabel('Confirm keystore password').fill('grüße 🔑');
    await asking.getByLabel('Legacy encryption').check();
    const saving = page.waitForEvent('download');
    await asking.getByRole('button', { name: 'Download' }).click();
    const keystore = await saving;
    assert.equal(keystore.suggestedFilename(), 'www-keystore.p12');
    const bytes = readFileSync(await keystore.path());
    const opened = readPkcs12(bytes, new Secret('grüße 🔑'), 'keystore.p12');
    assert.equal(opened.certificates.length, 2);
    await asking.waitFor({ state: 'hidden' });
    await page.getByRole('tab', { name: 'Overview' }).press('ArrowRight');
    await page.getByRole('heading', { name: 'Version 2' }).waitFor();
    await page.getByRole('heading', { name: 'Version 1' }).waitFor();
    await page.getByRole('tab', { name: 'Access' }).click();
    await page.getByRole('rowheader', { name: 'web-1' }).waitFor();
    await page.getByRole('tab', { name: 'Audit log' }).click();
    for (const file of ['fullchain.crt', 'keystore.p12']) {
      await page.getByRole('row', { name: `artifact: ${file}` }).waitFor();
    }
    const more = page.getByRole('button', { name: /^More/ });
    await more.click();
    await page.getByRole('button', { name: 'Disable' }).click();
    await page.getByText('disabled', { exact: true }).waitFor();
    await more.click();
    await page.getByRole('button', { name: 'Delete…' }).click();
    const dialog = page.getByRole('dialog');
    assert(await dialog.getByRole('button', { name: 'Delete' }).isDisabled());
    await dialog.getByLabel('Type www to confirm').fill('www');
    expectComplaint(/status of 409/);
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await dialog.getByRole('alert').waitFor();
    await dialog
      .getByLabel('Delete the certificate anyway, and remove it from the allowlists of API keys')
      .check();
    await dialog.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No certificates yet' }).waitFor();
    await page.getByRole('link', { name: 'Deleted' }).click();
    await page.getByRole('button', { name: 'Restore www' }).click();
    await page.getByText('These API keys no longer list the certificate').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).click();
    await page.getByRole('heading', { name: 'www', exact: true }).waitFor();
  },
);

test('changing the domains renews immediately, and errors appear at their fields', chromium, async (t) => {
  const { alice, expectComplaint } = await visit(t);
  const { page, open, createCertificates } = await alice();
  await createCertificates('www');
  await open('/certificates/www');
  await page.getByRole('button', { name: /^More/ }).click();
  await page.getByRole('button', { name: 'Edit…' }).click();
  const domains = page.getByRole('dialog').getByLabel('Domains');
  await domains.fill('not a domain!');
  expectComplaint(/status of 400/);
  await page.getByRole('button', { name: 'Save and renew' }).click();
  await page.getByRole('dialog').getByRole('alert').first().waitFor();
  await domains.fill('www.example.com\nwww.example.net');
  await page.getByRole('button', { name: 'Save and renew' }).click();
  await page.getByText('Issued version 2.').waitFor();
  await page.getByText('www.example.com, www.example.net').first().waitFor();
});

test(
  'the first of many certificates are shown before the rest is loaded, with counts that are not final',
  chromium,
  async (t) => {
    const { alice } = await visit(t);
    const { page, createCertificates } = await alice();
    const names = Array.from({ length: 210 }, (_, index) => `host-${1000 + index}`);
    await createCertificates(...names);
    const released = Promise.withResolvers<void>();
    await page.route(/certificates\?limit=1000/, async (route) => {
      await released.promise;
      await route.continue();
    });
    await page.goto('/certificates');
    await page.getByRole('button', { name: 'Healthy 200 so far', exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Expiries per week so far' }).waitFor();
    await page.getByRole('row').getByRole('link', { name: 'host-1000' }).waitFor();
    await page.getByLabel('Search').fill('host-1209');
    await page.getByRole('heading', { name: 'No matches so far' }).waitFor();
    released.resolve();
    await page.getByRole('row').getByRole('link', { name: 'host-1209' }).waitFor();
    await page.getByRole('button', { name: 'Healthy 210', exact: true }).waitFor();
  },
);
