/** Emergency replacements in the console: the preview, the start, their progress and end. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { overflowOf } from '../harness/console/overflow.ts';
import { rendered, signIn, visit } from '../harness/console/visit.ts';
import { moveGeneration, outside } from '../harness/database/outside-database.ts';
import { otherPassword } from '../harness/http/sign-in-fixtures.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { serve, vault } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';

const browser = needs('chromium');

const dialogOf = (page: Page) => page.getByRole('dialog');

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });

const heading = (page: Page, name: string) =>
  page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

/** The texts of the cells of each row of a table. */
async function rowsOf(page: Page, table: string): Promise<string[][]> {
  const rows = await page.getByRole('table', { name: table }).locator('tbody tr:not(.table-gap)').all();
  return Promise.all(
    rows.map(async (row) => {
      const cells = await row.locator('th, td').allInnerTexts();
      return cells.map((text) => text.replaceAll(/\s*\n\s*/g, ' | '));
    }),
  );
}

test(
  'a certificate with a compromised key is replaced from its menu after a preview, and the replacement is canceled',
  browser,
  async (t) => {
    const { alice } = await visit(t);
    const { page, ask, open, createCertificates } = await alice({ reducedMotion: 'reduce' });
    await createCertificates('shop');
    await ask('POST', '/api-keys', { name: 'web-1', scopes: ['certificates:read'], certificates: ['shop'] });
    await ask('POST', '/endpoints', { address: '127.0.0.1:1', certificate: 'shop' });
    await open('/certificates/shop');
    await page.getByRole('button', { name: 'More actions for this certificate' }).click();
    await page.getByRole('button', { name: 'Replace compromised key…' }).click();
    await heading(page, 'Replace certificates');
    assert.equal(await page.getByLabel('Certificate', { exact: true }).inputValue(), 'shop');
    assert.equal(await page.getByLabel('Reason').inputValue(), 'key-compromised');
    await button(page, 'Preview').click();
    const replace = button(page, 'Replace 1 certificate');
    await replace.waitFor();
    const [affected = []] = await rowsOf(page, 'Affected certificates');
    assert.deepEqual(
      [affected[0], affected[1], ...affected.slice(3)],
      [...['shop', '1', 'none', '127.0.0.1:1', 'web-1']],
    );

    await page.getByLabel('Deadline').fill('4h');
    await replace.waitFor({ state: 'detached' });
    await button(page, 'Preview').click();
    await replace.click();
    await button(page, 'Replace').click();
    await heading(page, 'Replacement 1');
    await page.getByRole('cell', { name: '1 → 2' }).waitFor();
    await page.getByText('Certificate shop: 0 of 1 revoked.').waitFor();
    await page.getByLabel('State').selectOption('failed');
    await page.getByRole('heading', { name: 'No matches' }).waitFor();
    await page.getByLabel('State').selectOption('');

    await button(page, 'Cancel replacement').click();
    await dialogOf(page).getByText('New versions stay, and no further versions are revoked').waitFor();
    await button(page, 'Let it continue').click();
    await dialogOf(page).waitFor({ state: 'detached' });
    await button(page, 'Cancel replacement').click();
    await dialogOf(page).getByRole('button', { name: 'Cancel replacement' }).click();
    await page.getByText('Certificate shop: 0 of 1 revoked, 1 canceled.').waitFor();
    await button(page, 'Cancel replacement').waitFor({ state: 'detached' });
    await page.getByRole('table', { name: 'Certificates' }).getByText('canceled').waitFor();
  },
);

test(
  'all certificates of an issuer are replaced without those that require action, and the list shows the end without a reload',
  browser,
  async (t) => {
    const { alice } = await visit(t);
    const { page, ask, createCertificates } = await alice({ reducedMotion: 'reduce' });
    await createCertificates('shop', 'mail', 'wiki');
    await ask('PATCH', '/certificates/wiki', { disabled: true });
    await page.getByRole('navigation').getByRole('link', { name: 'Renewals' }).click();
    await page.getByRole('link', { name: 'View replacements' }).click();
    await page.getByRole('heading', { name: 'No replacements yet' }).waitFor();
    await page.getByRole('link', { name: 'Replace certificates' }).click();
    assert.equal(await button(page, 'Preview').isDisabled(), true, 'without a selection');
    await page.getByLabel('Replace', { exact: true }).selectOption('issuer');
    await page.getByLabel('Issuer').selectOption('local-ca');
    assert.equal(await page.getByLabel('Reason').inputValue(), 'superseded');
    await page.getByLabel('Deadline').fill('0');
    await button(page, 'Preview').click();
    await page.getByText('The vault cannot replace 1 certificate. The table shows why.').waitFor();
    const names = (await rowsOf(page, 'Affected certificates')).map(([name]) => name);
    assert.deepEqual(
      [names[0], ...names.slice(1).toSorted()],
      [...['wiki | Not replaced: it is disabled', 'mail', 'shop']],
    );
    await button(page, 'Replace 2 certificates').click();
    await button(page, 'Replace').click();
    await heading(page, 'Replacement 1');
    await page.getByRole('link', { name: 'View all replacements' }).click();
    await page.getByText('2 of 2 revoked').waitFor();
    const [row = []] = await rowsOf(page, 'Replacements');
    assert.deepEqual(row.slice(0, 2), [
      'Certificates of the issuer local-ca | Superseded',
      'finished | 2 of 2 revoked',
    ]);
    assert.match(row[3] ?? '', /by admin:alice$/);
  },
);

test(
  'the page of a replacement of thousands of certificates loads them in pages, and fits wide and narrow screens',
  browser,
  async (t) => {
    const dataDir = tempDir(t);
    const { alice } = await visit(t, { dataDir });
    const { page, ask, open, createCertificates } = await alice({ reducedMotion: 'reduce' });
    await createCertificates('shop');
    await ask('POST', '/replacements', { certificate: 'shop' });
    await ask('POST', '/replacements/1/cancel', {});
    outside(dataDir, (db) => {
      const row = db.prepare(
        `insert into replacement_certificates
           (replacement_id, certificate_id, name, state, old_version, next_at, changed_at, finished_at, error)
         select replacement_id, certificate_id, ?, ?, 1, next_at, changed_at, changed_at, ?
         from replacement_certificates where name = 'shop'`,
      );
      for (let index = 1; index < 5000; index += 1) {
        const error = index === 4000 ? 'the CA rejected the order '.repeat(20).trim() : null;
        row.run(`web-${index}.department.example.test`, error === null ? 'revoked' : 'failed', error);
      }
    });
    moveGeneration(dataDir);
    await open('/replacements/1');
    await page.getByText('4,998 of 5,000 revoked, 1 failed, 1 canceled').waitFor();
    const table = page.getByRole('table', { name: 'Certificates' });
    assert.equal(await table.getAttribute('aria-rowcount'), '51');
    await button(page, 'Show more').click();
    await page.locator('table[aria-rowcount="101"]').waitFor();
    await page.getByLabel('State').selectOption('failed');
    await page.getByText('web-4000.department.example.test').waitFor();
    for (const path of [
      '/replacements',
      '/replacements/new',
      '/replacements/1',
      '/replacements/1?state=failed',
    ]) {
      await open(path);
      for (const width of [1280, 360]) {
        await page.setViewportSize({ width, height: 800 });
        await rendered(page);
        assert.ok((await overflowOf(page)) <= 0, `${path} at ${width}`);
      }
    }
  },
);

test(
  'a replacement starts from the console after a second administrator approved it, and a viewer sees the role that it needs',
  browser,
  async (t) => {
    const dataDir = tempDir(t);
    const start = () => serve(t, dataDir, { args: ['--second-approval'] });
    const { alice, visitor, expectComplaint } = await visit(t, { dataDir, start });
    const { page, createCertificates, open } = await alice({ reducedMotion: 'reduce' });
    await createCertificates('shop');
    const password = `${otherPassword}\n`;
    const members = { bob: 'admin', carol: 'viewer' };
    for (const [name, role] of Object.entries(members)) {
      const args = ['--name', name, '--role', role, '--password-stdin', '--data-dir', dataDir];
      const created = await vault(['admin', 'create', ...args], { input: password });
      assert.equal(created.code, 0, created.stderr);
    }
    await open('/replacements/new?certificate=shop');
    await button(page, 'Preview').click();
    await button(page, 'Replace 1 certificate').click();
    expectComplaint(/status of 403/);
    await button(page, 'Replace').click();
    await dialogOf(page).getByText('A second administrator has to approve this').waitFor();
    await dialogOf(page).getByRole('link', { name: 'View approvals' }).waitFor();

    const bob = await visitor();
    await bob.open('/sign-in');
    await signIn(bob.page, 'bob', otherPassword);
    await bob.open('/approvals');
    const summary = 'Replace and revoke the certificate shop (key-compromised)';
    await button(bob.page, `Approve: ${summary}`).click();
    await button(bob.page, 'Approve').click();
    await bob.page.getByText('by admin:bob').waitFor();
    await button(page, 'Replace').click();
    await heading(page, 'Replacement 1');

    const carol = await visitor();
    await carol.open('/sign-in');
    await signIn(carol.page, 'carol', otherPassword);
    const refused = async (name: string) => {
      const refusal = 'Requires the role operator; yours is viewer.';
      assert.equal(await button(carol.page, name).getAttribute('title'), refusal, name);
      await button(carol.page, name).click({ force: true });
    };
    await carol.open('/replacements');
    await refused('Replace certificates');
    await carol.open('/replacements/1');
    await refused('Cancel replacement');
    await carol.open('/replacements/new?certificate=shop');
    await button(carol.page, 'Preview').click();
    await button(carol.page, 'Replace 1 certificate').waitFor();
    await refused('Replace 1 certificate');
    await rendered(carol.page);
    assert.equal(await dialogOf(carol.page).count(), 0);
  },
);
