/** How renewals end: each way whole or not at all, with what it means for the certificate and for its issuer. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { findAcmeIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { findRenewal, updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { type Failure, fail, supersede } from '../../../src/domain/renewals/renewal-outcome.ts';
import { change, makeCertificate, rowOf, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { addWebhook } from '../../harness/notifications/fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** A certificate that was never issued, with its first renewal under way at an ACME CA. */
async function underWay(t: TestContext) {
  const opened = await testVault(t);
  const { vault } = opened;
  const issuer = await silentIssuer(vault, 'ca');
  await makeCertificate(vault, 'www', { issuer: 'ca' });
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  await vault.db.write((writer) =>
    updateRenewal(writer, claimed.renewal.id, { sealed_private_key: Buffer.of(1) }),
  );
  const attempt = { ...claimed, certificate: await rowOf(vault, 'www') };
  const failWith = (failure: Partial<Failure>) =>
    vault.db.write((writer) =>
      fail(vault, writer, attempt, {
        reason: 'no',
        ...failure,
      }),
    );
  const row = () => rowOf(vault, 'www');
  const renewal = () => findRenewal(vault.db.reader, claimed.renewal.id);
  const pause = async () => (await findAcmeIssuer(vault.db.reader, issuer))?.paused_until;
  const failures = async () => {
    const query = vault.db.reader.selectFrom('audit_events').select('detail');
    return (await query.where('action', '=', 'renewal.fail').execute()).map(({ detail }) =>
      JSON.parse(detail),
    );
  };
  const notices = () => vault.db.reader.selectFrom('notification_deliveries').select('id').execute();
  return { ...opened, attempt, failWith, row, renewal, pause, failures, notices };
}

test('a failure is notified, counted and recorded, and the next attempt is scheduled', async (t) => {
  const { vault, world, failWith, row, renewal, pause, failures, notices } = await underWay(t);
  await addWebhook(vault, 'https://receiver.example.test/');
  await failWith({ reason: 'the CA said no' });
  assert.equal((await notices()).length, 1);
  const { last_error, failed_attempts, last_attempt_at, retry_after, next_renewal_at } = await row();
  assert.deepEqual([last_error, failed_attempts, retry_after], ['the CA said no', 1, null]);
  assert.deepEqual([last_attempt_at, next_renewal_at], [world.now(), world.now() + minute]);
  const ended = await renewal();
  assert.deepEqual([ended?.status, ended?.error], ['failed', 'the CA said no']);
  assert.deepEqual([ended?.lease_owner, ended?.sealed_private_key], [null, null]);
  assert.equal(await pause(), null);
  assert.deepEqual(await failures(), [{ renewal: 1, error: 'the CA said no' }]);
});

test('a Retry-After delays the certificate without pausing the issuer, and is cleared by the next failure', async (t) => {
  const { vault, world, attempt, failWith, row, pause } = await underWay(t);
  await failWith({ retryAfterMs: 2 * day });
  assert.equal((await row()).next_renewal_at, world.now() + 2 * day);
  assert.equal(await pause(), null);
  const open = { status: 'running' as const, lease_owner: attempt.owner };
  await vault.db.write((writer) => updateRenewal(writer, 1, open));
  await failWith({});
  const { retry_after, next_renewal_at } = await row();
  assert.deepEqual([retry_after, next_renewal_at], [null, world.now() + 10 * minute]);
});

test('a Retry-After of the fallback keeps that of the primary issuer; one of a DNS provider applies to both', async (t) => {
  const { vault, world, attempt, failWith, row } = await underWay(t);
  const fallback = await silentIssuer(vault, 'fallback');
  await change(vault, 'www', { fallback_issuer_id: fallback });
  const again = async (issuer_id: number | null, failure: Partial<Failure>) => {
    const open = { status: 'running' as const, lease_owner: attempt.owner };
    await vault.db.write((writer) => updateRenewal(writer, 1, open));
    const renewal = { ...attempt.renewal, issuer_id };
    await vault.db.write((writer) =>
      fail(vault, writer, { ...attempt, renewal }, { reason: 'no', ...failure }),
    );
    const { retry_after, fallback_retry_after } = await row();
    return [retry_after, fallback_retry_after].map((until) => until && until - world.now());
  };
  await failWith({ retryAfterMs: day });
  assert.deepEqual(await again(fallback, { retryAfterMs: 2 * day }), [day, 2 * day]);
  assert.deepEqual(await again(fallback, {}), [day, null]);
  assert.deepEqual(await again(attempt.renewal.issuer_id, { retryAfterMs: 30 * day }), [7 * day, null]);
  const byProvider = { retryAfterMs: hour, askedBy: 'dns-provider' as const };
  assert.deepEqual(await again(fallback, byProvider), [hour, hour]);
});

for (const [what, retryAfterMs, paused] of [
  ['its Retry-After', 20 * minute, 20 * minute],
  ['at most an hour', 30 * day, hour],
] as const) {
  test(`a service limit pauses the issuer for ${what}`, async (t) => {
    const { world, failWith, pause } = await underWay(t);
    await failWith({ retryAfterMs, limit: { scope: 'service' } });
    assert.equal(await pause(), world.now() + paused);
  });
}

test('a service limit without Retry-After does not pause the issuer', async (t) => {
  const { failWith, pause } = await underWay(t);
  await failWith({ limit: { scope: 'service' } });
  assert.equal(await pause(), null);
});

test('a superseded renewal of a disabled certificate is not counted as a failure and not scheduled', async (t) => {
  const { vault, world, attempt, row, renewal, failures } = await underWay(t);
  await change(vault, 'www', { disabled_at: world.now() });
  await vault.db.write((writer) => supersede(vault, writer, attempt, 'it was disabled'));
  const { last_error, failed_attempts, next_renewal_at } = await row();
  assert.deepEqual([last_error, failed_attempts, next_renewal_at], [null, 0, null]);
  assert.deepEqual([(await renewal())?.status, (await renewal())?.error], ['failed', 'it was disabled']);
  assert.deepEqual(await failures(), []);
});

test('a superseded renewal of an active certificate is queued again in the same transaction', async (t) => {
  const { vault, attempt, row, renewal } = await underWay(t);
  await vault.db.write((writer) => supersede(vault, writer, attempt, 'other names are wanted'));
  assert.equal((await renewal())?.status, 'failed');
  const next = await findRenewal(vault.db.reader, 2);
  assert.deepEqual([next?.status, next?.issuer_id], ['queued', (await row()).issuer_id]);
  assert.equal((await row()).failed_attempts, 0);
});

test('a worker that lost the lease finishes nothing, pauses no issuer, and records and notifies nothing', async (t) => {
  const { vault, attempt, failWith, row, renewal, pause, failures, notices } = await underWay(t);
  await addWebhook(vault, 'https://receiver.example.test/');
  await vault.db.write((writer) => updateRenewal(writer, 1, { lease_owner: 'other' }));
  const before = [await row(), await renewal()];
  await failWith({ retryAfterMs: minute, limit: { scope: 'service' } });
  await vault.db.write((writer) => supersede(vault, writer, attempt, 'late'));
  assert.deepEqual([await row(), await renewal()], before);
  assert.equal(await pause(), null);
  assert.deepEqual(await failures(), []);
  assert.deepEqual(await notices(), []);
});
