/** Exchanges of a token by several processes on one database, and while the enrollment changes. */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { day } from '../../../src/base/duration.ts';
import { Problem } from '../../../src/base/problem.ts';
import { realWorld } from '../../../src/base/world.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { pruneAuditLog } from '../../../src/domain/audit/audit-retention.ts';
import { verifyChain } from '../../../src/domain/audit/audit-verification.ts';
import { viewEnrollment } from '../../../src/domain/enrollments/enrollment-views.ts';
import { deleteEnrollment, revokeEnrollment } from '../../../src/domain/enrollments/enrollments.ts';
import { exchangeToken, presentedEnrollment } from '../../../src/domain/enrollments/exchange.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { makeEnrollment } from '../../harness/http/enrollments.ts';
import { testVault } from '../../harness/test-vault.ts';

const expires_at = '2999-01-01T00:00:00Z';

async function twoProcesses(t: TestContext) {
  // Who waits for the lock of the other sleeps in real time.
  const one = await testVault(t, { world: realWorld });
  const other = await testVault(t, { dataDir: one.dataDir, world: realWorld });
  return [one.vault, other.vault] as const;
}

/** The id of the key, or the code of the problem. */
async function exchanged(vault: Vault, token: string, input: { host: string; request?: string }) {
  const found = await presentedEnrollment(vault, token);
  assert(found);
  const actor = { name: found.actorName, ip: '192.0.2.1' };
  try {
    return (await exchangeToken(vault, actor, found, { request: undefined, ...input })).id;
  } catch (error) {
    assert(error instanceof Problem, String(error));
    return error.code;
  }
}

suite('two processes on one database', () => {
  test('create together as many keys as a token has uses, each with a name of its own', async (t) => {
    const vaults = await twoProcesses(t);
    const { id, token } = await makeEnrollment(vaults[0], { uses: 7, expires_at });
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => exchanged(vaults[n % 2 === 0 ? 0 : 1], token, { host: 'www1' })),
    );
    const keys = results.filter((result) => typeof result === 'number');
    assert.deepEqual(
      keys.toSorted((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7],
    );
    assert.deepEqual(
      new Set(results.filter((result) => typeof result === 'string')),
      new Set(['enrollment_inactive']),
    );
    const names = await vaults[0].db.reader.selectFrom('api_keys').select('name').execute();
    assert.equal(new Set(names.map(({ name }) => name)).size, 7);
    const { uses, state } = await viewEnrollment(vaults[1], id);
    assert.deepEqual([uses, state], [7, 'used_up']);
    assert.deepEqual((await verifyChain(vaults[0])).faults, []);
  });

  test('create one key for a request that reaches both of them', async (t) => {
    const vaults = await twoProcesses(t);
    const { id, token } = await makeEnrollment(vaults[0], { uses: 7, expires_at });
    const input = { host: 'www1', request: 'reaches-both-of-them' };
    const results = await Promise.all(
      Array.from({ length: 6 }, (_, n) => exchanged(vaults[n % 2 === 0 ? 0 : 1], token, input)),
    );
    assert.deepEqual(results, [1, 1, 1, 1, 1, 1]);
    assert.equal((await viewEnrollment(vaults[1], id)).uses, 1);
  });
});

test('a token that is revoked or deleted after it was presented creates no key', async (t) => {
  const { vault } = await testVault(t);
  for (const end of ['revoked', 'deleted']) {
    const { id, token } = await makeEnrollment(vault, { name: end });
    const found = await presentedEnrollment(vault, token);
    assert(found);
    await revokeEnrollment(vault, localCli, id, { api_keys: false });
    if (end === 'deleted') await deleteEnrollment(vault, localCli, id);
    await assert.rejects(
      exchangeToken(vault, { name: found.actorName }, found, { host: 'www1', request: undefined }),
      (error) => error instanceof Problem && error.code === 'enrollment_inactive',
    );
  }
  assert.deepEqual(await vault.db.reader.selectFrom('api_keys').selectAll().execute(), []);
});

test('a token creates keys after all events about its enrollment were pruned', async (t) => {
  const { vault, world } = await testVault(t);
  const { token } = await makeEnrollment(vault, { uses: 2, expires_at });
  assert.equal(await exchanged(vault, token, { host: 'www1' }), 1);
  world.advance(40 * day);
  assert((await pruneAuditLog(vault, 30 * day)) > 0);
  const actions = await vault.db.reader
    .selectFrom('audit_events')
    .select('action')
    .where('resource', '=', 'enrollment:1')
    .execute();
  assert.deepEqual(actions, [{ action: 'integrity.row' }]);
  assert.equal(await exchanged(vault, token, { host: 'www2' }), 2);
});

test('a token that is bound to addresses is refused from one that is unknown', async (t) => {
  const { vault } = await testVault(t);
  const { token } = await makeEnrollment(vault, { bind_address: true });
  const found = await presentedEnrollment(vault, token);
  assert(found);
  await assert.rejects(
    exchangeToken(vault, { name: found.actorName }, found, { host: 'www1', request: undefined }),
    (error) => error instanceof Problem && /from the address unknown\./.test(error.body.detail),
  );
});
