/** What the doctor says of private CAs whose roots expire. (Of exported keys: private-ca/offline-root.test.ts.) */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { authorityFindings } from '../../../src/domain/doctor/authority-findings.ts';
import { addStagingCa, exportRoot, rootExpiry, untilLeft } from '../../harness/ca/private-ca-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const replace = 'Replace it while clients trust it, and install the new root on them.\nFix: vault ca rotate';
const tooLate =
  'Clients reject everything that was issued under it. Add a private CA, and install its root on them.\nFix: vault issuer add --type local-ca --name NAME';

test('a root with less than a year left is a warning; with less than 30 days, or expired, a failure', async (t) => {
  const opened = await testVault(t);
  const end = (await rootExpiry(opened.vault, 'local-ca')).text;
  const cases: [left: number, findings: [status: string, message: string, hint: string][]][] = [
    [365, []],
    [364, [['warning', `local-ca: its root expires at ${end}`, replace]]],
    [30, [['warning', `local-ca: its root expires at ${end}`, replace]]],
    [29, [['failed', `local-ca: its root expires at ${end}`, replace]]],
    [0, [['failed', `local-ca: its root expired at ${end}`, tooLate]]],
    [-100, [['failed', `local-ca: its root expired at ${end}`, tooLate]]],
  ];
  for (const [left, expected] of cases) {
    await untilLeft(opened, 'local-ca', left * day);
    const findings = await authorityFindings(opened.vault);
    assert.deepEqual(
      findings.map(({ status, message, hint }) => [status, message, hint]),
      expected,
      `${left} days left`,
    );
  }
});

test('each private CA has its own finding, and the fix command includes --issuer except for local-ca', async (t) => {
  const opened = await testVault(t);
  opened.world.advance(day);
  await addStagingCa(opened.vault);
  await untilLeft(opened, 'staging-ca', 100 * day);
  const findings = await authorityFindings(opened.vault);
  assert.deepEqual(
    findings.map(({ about, status, hint }) => [about, status, hint?.split('\n')[1]]),
    [
      ['local-ca', 'warning', 'Fix: vault ca rotate'],
      ['staging-ca', 'warning', 'Fix: vault ca rotate --issuer staging-ca'],
    ],
  );
});

test('for an exported root key, the hint is to import the key before rotation', async (t) => {
  const opened = await testVault(t);
  opened.world.advance(6 * 365 * day);
  await exportRoot(opened.vault, 'local-ca');
  await untilLeft(opened, 'local-ca', 300 * day);
  const [root, intermediate] = await authorityFindings(opened.vault);
  assert.equal(root?.status, 'warning');
  assert.match(root.hint ?? '', /and rotate\.\nFix: vault ca import-root-key FILE .* --issuer local-ca$/);
  assert.equal(intermediate?.status, 'ok', 'it expires with the root, which is announced');
});
