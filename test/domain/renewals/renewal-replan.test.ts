/**
 * Planning anew: what a wrong clock computed is put right, what is right or due stays, and others can write meanwhile.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { toJson } from '../../../src/base/json.ts';
import { findAcmeIssuer, findIssuer, updateAcmeIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { claimRenewal, leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import { replanAll } from '../../../src/domain/renewals/renewal-replan.ts';
import { queueDueRenewals, requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import {
  change,
  giveVersion,
  makeCertificate,
  rowOf,
  silentIssuer,
} from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const year = 365 * day;

const next = async (vault: Vault, name: string) => (await rowOf(vault, name)).next_renewal_at;

test('replanAll keeps correct times and writes nothing', async (t) => {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'a');
  const before = await rowOf(vault, 'a');
  const generation = await vault.db.generation();
  assert.equal(await replanAll(vault), 0);
  assert.equal(await vault.db.generation(), generation);
  assert.deepEqual(await rowOf(vault, 'a'), before);
});

test('a failure recorded by a clock a year ahead is retried within minutes after the clock is corrected', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  world.advance(year);
  const failed = {
    failed_attempts: 2,
    last_attempt_at: world.now(),
    next_renewal_at: world.now() + 10 * minute,
  };
  await change(vault, 'a', failed);
  world.advance(-year);
  assert.equal(await replanAll(vault), 1);
  assert.equal(await next(vault, 'a'), world.now() + 10 * minute);
});

test('repeated replanning does not postpone an attempt again after the clock was corrected', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  const last_attempt_at = world.now() + year;
  await change(vault, 'a', { failed_attempts: 9, last_attempt_at, next_renewal_at: last_attempt_at + day });
  await replanAll(vault);
  const planned = await next(vault, 'a');
  assert.equal(planned, world.now() + day);
  for (let hours = 0; hours < 24; hours += 1) {
    assert.equal(await next(vault, 'a'), planned);
    world.advance(hour);
    await replanAll(vault);
  }
  assert.equal(await queueDueRenewals(vault, 100), 1);
});

test('a version issued while the clock was a year ahead is renewed in time, however often it is rescheduled', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  const right = await next(vault, 'a');
  const created_at = world.now() + year;
  await vault.db.write((writer) => writer.updateTable('certificate_versions').set({ created_at }).execute());
  await change(vault, 'a', { next_renewal_at: created_at + 5 * day });
  for (let days = 0; days < 55; days += 1) {
    await replanAll(vault);
    assert.equal(await next(vault, 'a'), right);
    world.advance(day);
  }
});

test('a due certificate stays due at its original time', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  await change(vault, 'a', { changed_at: world.now(), next_renewal_at: world.now() });
  const since = world.now();
  world.advance(3 * hour);
  assert.equal(await replanAll(vault), 0);
  assert.equal(await next(vault, 'a'), since);
  assert.equal(await queueDueRenewals(vault, 100), 1);
});

test('certificates wrongly due or wrongly postponed by a wrong clock are rescheduled', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'early');
  await makeCertificate(vault, 'late');
  const right = await next(vault, 'early');
  await change(vault, 'early', { next_renewal_at: world.now() - 1 });
  await change(vault, 'late', { next_renewal_at: world.now() + year, changed_at: 1 });
  assert.equal(await replanAll(vault), 2);
  assert.equal(await next(vault, 'early'), right);
  assert.equal(await next(vault, 'late'), world.now());
});

test('certificates that do not renew are left alone, and disabled ones are not scheduled', async (t) => {
  const { vault } = await testVault(t);
  await makeCertificate(vault, 'manual');
  await makeCertificate(vault, 'disabled');
  await change(vault, 'manual', { auto_renew: 0, next_renewal_at: 1 });
  await change(vault, 'disabled', { disabled_at: 1, next_renewal_at: 1 });
  assert.equal(await replanAll(vault), 1);
  assert.deepEqual([await next(vault, 'manual'), await next(vault, 'disabled')], [1, null]);
});

test('a renewal window check scheduled by a clock a year ahead becomes due immediately', async (t) => {
  const { vault, world } = await testVault(t);
  for (const name of ['far', 'usual']) await makeCertificate(vault, name);
  await change(vault, 'far', { ari_check_at: world.now() + year });
  await change(vault, 'usual', { ari_check_at: world.now() + day });
  assert.equal(await replanAll(vault), 1);
  const [far, usual] = [await rowOf(vault, 'far'), await rowOf(vault, 'usual')];
  assert.deepEqual([far.ari_check_at, usual.ari_check_at], [world.now(), world.now() + day]);
});

test('a renewal whose worker died while the clock was a year ahead is started a minute later', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  await requestRenewal(vault, localCli, 'a');
  world.advance(year);
  assert(await claimRenewal(vault, 'dead'));
  world.advance(-year);
  await replanAll(vault);
  assert.equal(await claimRenewal(vault, 'next'), undefined);
  world.advance(leaseDuration);
  assert(await claimRenewal(vault, 'next'));
});

test('a pause that began while the clock was a year ahead ends within the hour, a usual one as it was', async (t) => {
  const { vault, world } = await testVault(t);
  const [far, usual] = [await silentIssuer(vault, 'far'), await silentIssuer(vault, 'usual')];
  const pause = (issuer: number, paused_until: number) =>
    vault.db.write((writer) => updateAcmeIssuer(writer, issuer, { paused_until }));
  const until = async (issuer: number) => (await findAcmeIssuer(vault.db.reader, issuer))?.paused_until;
  await pause(far, world.now() + year);
  await pause(usual, world.now() + minute);
  await replanAll(vault);
  assert.deepEqual([await until(far), await until(usual)], [world.now() + hour, world.now() + minute]);
});

test('a renewal that finishes during rescheduling is not scheduled by outdated facts', async (t) => {
  const { vault, world } = await testVault(t);
  await makeCertificate(vault, 'a');
  world.advance(89 * day);
  await change(vault, 'a', { next_renewal_at: world.now() + year });
  const list = vault.db.reader.selectFrom.bind(vault.db.reader);
  const original = vault.db.write.bind(vault.db);
  let hasRead = false;
  t.mock.method(vault.db.reader, 'selectFrom', ((...args: Parameters<typeof list>) => {
    hasRead = true;
    return list(...args);
  }) as typeof list);
  let isRenewed = false;
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof original>[0]) => {
    if (hasRead && !isRenewed) {
      isRenewed = true;
      await giveVersion(vault, 'a');
    }
    return original(work);
  });
  assert.equal(await replanAll(vault), 0);
  assert(isRenewed);
  assert(((await next(vault, 'a')) ?? 0) > world.now() + 50 * day);
});

/** Rows of one statement. */
const atOnce = 500;

/** Certificates with a version each, straight into the database: what their bytes are does not matter here. */
async function fill(vault: Vault, count: number): Promise<void> {
  const issuer = await findIssuer(vault.db.reader, 'local-ca');
  const now = vault.world.now();
  const text = { issuer: '', subject: '', domains: toJson([]), key_type: 'ec256', fingerprint_sha256: '' };
  const etags = { certificate_etag: '', chain_etag: '', fullchain_etag: '', private_key_etag: '' };
  await vault.db.write(async (writer) => {
    for (let n = 1; n <= count; n += atOnce) {
      const certificates = Array.from({ length: atOnce }, (_, index) => ({
        ...{ name: `c${n + index}`, domains: toJson([]), key_type: 'ec256', issuer_id: issuer?.id ?? null },
        ...{ auto_renew: 1 as const, reuse_key: 0 as const, current_version: 1 },
        ...{ next_renewal_at: now + year, created_at: now },
      }));
      const inserted = await writer.insertInto('certificates').values(certificates).returning('id').execute();
      const versions = inserted.map(({ id: certificate_id }) => ({
        ...{ certificate_id, version: 1, serial: '1', ...text, ...etags, source: 'local-ca' as const },
        ...{ not_before: now, not_after: now + 90 * day, created_at: now },
        ...{ certificate_pem: '', chain_pem: '', sealed_private_key: Buffer.alloc(0) },
      }));
      await writer.insertInto('certificate_versions').values(versions).execute();
    }
  });
}

test('replanAll schedules 10,000 certificates in transactions of at most 200 changes with turns between them', async (t) => {
  const { vault, world } = await testVault(t);
  await fill(vault, 10_000);
  const original = vault.db.write.bind(vault.db);
  let transactions = 0;
  let longest = 0;
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof original>[0]) => {
    transactions += 1;
    const before = await vault.db.generation();
    const result = await original(work);
    longest = Math.max(longest, (await vault.db.generation()) - before);
    return result;
  });
  let turns = 0;
  const turn = () => {
    turns += 1;
    return world.turn();
  };
  assert.equal(await replanAll({ ...vault, world: { ...world, turn } }), 10_000);
  assert(transactions >= 50 && transactions <= 100, String(transactions));
  assert(longest <= 200, `${longest} changes in one transaction`);
  assert(turns >= 49, `${turns} times others had their turn`);
  assert.equal(await replanAll(vault), 0);
  const query = vault.db.reader.selectFrom('certificates').select('next_renewal_at');
  const moments = (await query.execute()).map(({ next_renewal_at }) => next_renewal_at ?? 0);
  for (const at of moments) assert(at > world.now() + 58 * day && at <= world.now() + 60 * day);
});
