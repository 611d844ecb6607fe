/** `vault licenses` at its door; that nothing is missing in it is in test/executable/inventory.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { vault } from '../../harness/processes/vault-process.ts';

test('"vault licenses" prints to stdout without a vault and rejects --data-dir', async () => {
  const { code, stdout, stderr } = await vault(['licenses'], { environment: { HOME: '/nonexistent' } });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' });
  assert.match(stdout, /^Certificate Vault .* is under the license Apache-2\.0/);
  assert.match(stdout, /^ {2}better-sqlite3 \d+\.\d+\.\d+: MIT$/m);
  const refused = await vault(['licenses', '--data-dir', '/nonexistent']);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /--data-dir/);
});
