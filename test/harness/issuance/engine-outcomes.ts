/** Assertions about finished renewals: messages, the next attempt, and that no challenge records are left. */
import assert from 'node:assert/strict';
import { minute } from '../../../src/base/duration.ts';
import type { CertificateRow } from '../../../src/db/tables/certificates/certificates.ts';
import type { RenewalRow } from '../../../src/db/tables/renewals/renewals.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { challengeRows, type Engine, issuedBy, workOn } from './engine-vault.ts';
import { rowOf } from './renewal-fixtures.ts';

/**
 * Asserts that the first renewal of `www` fails with this message, stores nothing and leaves no challenge record, and
 * that the next attempt is scheduled after a minute, or when the CA asks for it.
 */
export async function fails(
  { vault, world, work, zone }: Engine,
  words: RegExp,
): Promise<{ row: CertificateRow; ended: RenewalRow }> {
  const ended = await work();
  assert.equal(ended.status, 'failed');
  assert.match(ended.error ?? '', words);
  const row = await rowOf(vault, 'www');
  assert.deepEqual([row.last_error, row.failed_attempts, row.last_attempt_at], [ended.error, 1, world.now()]);
  assert.equal(row.current_version, null);
  assert.equal(row.next_renewal_at, Math.max(world.now() + minute, row.retry_after ?? 0));
  assert.deepEqual(await challengeRows(vault), []);
  assert.deepEqual([...zone.records], []);
  return { row, ended };
}

/** Asserts that the oldest renewal of the queue succeeds. */
export async function issues(vault: Vault): Promise<RenewalRow> {
  const ended = await workOn(vault);
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  return ended;
}

/** Asserts that a renewal of `www` requested now succeeds. */
export async function issuesAnother(vault: Vault): Promise<RenewalRow> {
  await requestRenewal(vault, localCli, 'www');
  return issues(vault);
}

/** Asserts that the first renewal succeeds in one attempt, with the only certificate that the CA has issued. */
export async function issuesOnce({ vault, ca }: Engine): Promise<RenewalRow> {
  const ended = await issues(vault);
  assert.deepEqual([ended.claims, issuedBy(ca)], [1, 1]);
  return ended;
}
