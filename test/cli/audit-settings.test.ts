/** The settings about the audit log: kept for ever unless said otherwise, and refused by name where wrong. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readSettings } from '../../src/cli/settings.ts';
import { tempDir } from '../harness/temp-dir.ts';

const day = 86_400_000;

test('the audit log is kept for ever unless a setting says for how long', async (t) => {
  const dir = { 'data-dir': tempDir(t) };
  const kept = async (environment: Record<string, string>) =>
    (await readSettings(dir, environment)).audit.keepFor;
  assert.equal(await kept({}), undefined);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: 'forever' }), undefined);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: '400d' }), 400 * day);
  assert.equal(await kept({ VAULT_AUDIT_RETENTION: '2y' }), 730 * day);
});

for (const value of ['0d', '12h', '30', 'never', '-1d', '1w']) {
  test(`--audit-retention ${value} is refused`, async (t) => {
    await assert.rejects(
      readSettings({ 'data-dir': tempDir(t), 'audit-retention': value }, {}),
      /--audit-retention: ".*" is not how long audit events can be kept/,
    );
  });
}
