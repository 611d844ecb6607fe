/**
 * Certificates for CSRs in a real browser: created from a pasted request, and shown without files that need the key.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { opensslRequest } from '../harness/ca/openssl-requests.ts';
import { visit } from '../harness/console/visit.ts';
import { needs } from '../harness/processes/missing-program.ts';

test('a pasted request becomes a certificate whose key the client holds, and its page says which files that rules out', {
  ...needs('chromium'),
  ...needs('openssl'),
}, async (t) => {
  const { alice, excuse } = await visit(t);
  const { page, open } = await alice();
  const names = 'DNS:db.example.test';
  await open('/new-certificate');
  await page.getByLabel('Name', { exact: true }).fill('db');
  await page.getByLabel('CSR (optional)').fill('nonsense');
  assert.equal(await page.getByLabel('Key type').count(), 0);
  excuse(/400/);
  await page.getByRole('button', { name: 'Create certificate' }).click();
  await page.getByText('csr has no PEM block').first().waitFor();
  await page.getByLabel('CSR (optional)').fill(opensslRequest({ names }).csr);
  await page.getByRole('button', { name: 'Create certificate' }).click();
  await page.getByRole('heading', { level: 1, name: 'db' }).waitFor();
  await page.getByText('The client holds the private key.').first().waitFor();
  await page.getByText('held by the client').waitFor();
  await page.getByRole('link', { name: 'fullchain.crt' }).waitFor();
  for (const file of ['private.key', 'combined.pem']) {
    assert.equal(await page.getByRole('link', { name: file }).count(), 0, file);
  }
  assert.equal(await page.getByRole('button', { name: 'keystore.p12' }).count(), 0);
});
