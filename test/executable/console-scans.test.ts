/** Scans in the console: the tab of the page Fleet, and the page of one with the servers that it found. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { overflowOf } from '../harness/console/overflow.ts';
import { visit } from '../harness/console/visit.ts';
import { loopbackSetting } from '../harness/loopback-guard.ts';
import { needs } from '../harness/processes/missing-program.ts';
import { freePort } from '../harness/processes/port.ts';
import { serve } from '../harness/processes/vault-process.ts';
import { tempDir } from '../harness/temp-dir.ts';
import { serverAt } from '../harness/tls-servers.ts';

const missing = { ...needs('openssl'), ...needs('chromium') };

test('a person adds a scan, sees the server that it found, and watches it', missing, async (t) => {
  const dataDir = tempDir(t);
  const start = () => serve(t, dataDir, { args: ['--endpoint-allow', loopbackSetting] });
  const { alice, expectComplaint } = await visit(t, { dataDir, start });
  const { page, open } = await alice({ reducedMotion: 'reduce' });
  const file = join(tempDir(t), 'foreign.pem');
  execFileSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '30'],
    ...['-subj', '/CN=intranet', '-addext', 'subjectAltName=DNS:intranet.test', '-keyout', `${file}.key`],
    ...['-out', file],
  ]);
  const port = await freePort();
  const pem = readFileSync(file, 'utf8') + readFileSync(`${file}.key`, 'utf8');
  await serverAt(t, { host: '127.0.12.2', port }, pem);

  await open('/fleet?tab=scans');
  await page.getByText('No scans yet').waitFor();
  await page.getByRole('button', { name: 'Add scan' }).click();
  const dialog = page.getByRole('dialog');
  const networks = dialog.getByLabel('Networks');
  await networks.fill('192.0.2.0/24');
  await dialog.getByLabel('Ports').fill(String(port));
  expectComplaint(/status of 400/);
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await dialog.locator('[aria-invalid]').waitFor();
  assert.equal(await networks.getAttribute('aria-invalid'), 'true');
  await networks.fill('127.0.12.0/30');
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await page.getByRole('link', { name: '127.0.12.0/30' }).click();

  const row = page.getByRole('row', { name: `127.0.12.2:${port}` });
  await row.getByText('intranet.test').first().waitFor();
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [360, 1280]) {
      await page.setViewportSize({ width, height: 800 });
      assert.equal(await overflowOf(page), 0);
    }
  }
  const choose = async (label: string) => {
    await row.getByRole('button', { name: `Actions for 127.0.12.2:${port}` }).click();
    await page.getByText(label, { exact: true }).click();
  };
  await choose('Details…');
  await dialog.getByText('-----BEGIN CERTIFICATE-----').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).click();
  await choose('Issue one here');
  assert.equal(await page.getByLabel('Domains').inputValue(), 'intranet.test');
  assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'intranet.test');
  await page.goBack();
  await choose('Watch it…');
  assert.equal(await dialog.getByLabel('Address').inputValue(), `127.0.12.2:${port}`);
  await dialog.getByRole('button', { name: 'Add', exact: true }).click();
  await row.getByText('yes', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No scans yet').waitFor();
});
