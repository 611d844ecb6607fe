/** Renewals of many certificates: one a minute at each CA, none later than its schedule, none twice. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { day, minute, second } from '../../../src/base/duration.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { requestRenewals } from '../../../src/domain/renewals/renewal-spread.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { change, endAll, makeCertificate, silentIssuer } from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

/** Queued renewals: the seconds from now until each may start, by certificate. */
async function waits({ db, world }: Vault): Promise<Record<string, number>> {
  const rows = await db.reader
    .selectFrom('renewals')
    .innerJoin('certificates', 'certificates.id', 'renewals.certificate_id')
    .select(['certificates.name', 'held_until'])
    .where('status', '=', 'queued')
    .orderBy('renewals.id')
    .execute();
  return Object.fromEntries(
    rows.map(({ name, held_until }) => [
      name,
      held_until === null ? 0 : Math.floor((held_until - world.now()) / second),
    ]),
  );
}

async function made(vault: Vault, issuer: string, ...names: string[]): Promise<void> {
  for (const name of names) {
    await makeCertificate(vault, name, { issuer });
    await change(vault, name, { next_renewal_at: vault.world.now() + 60 * day });
  }
  await endAll(vault);
}

test('renewals are spread to one per minute for each ACME CA, and not spread for the private CA', async (t) => {
  const { vault } = await testVault(t);
  for (const name of ['one', 'two']) await silentIssuer(vault, name);
  await made(vault, 'one', 'a', 'b', 'c');
  await made(vault, 'two', 'd', 'e');
  await made(vault, 'local-ca', 'f', 'g');
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  assert.deepEqual(await requestRenewals(vault, localCli, names), {
    queued: 7,
    alreadyOpen: 0,
    lastAt: vault.world.now() + 2 * minute,
  });
  const expected = { a: 0, b: 60, c: 120, d: 0, e: 60, f: 0, g: 0 };
  assert.deepEqual(await waits(vault), expected);
  assert.deepEqual(await requestRenewals(vault, localCli, names), {
    queued: 0,
    alreadyOpen: 7,
    lastAt: undefined,
  });
  assert.deepEqual(await waits(vault), expected);
});

test('a later request continues the spread after renewals that are still waiting', async (t) => {
  const { vault, world } = await testVault(t);
  await silentIssuer(vault, 'ca');
  await made(vault, 'ca', 'a', 'b', 'c', 'd');
  await requestRenewals(vault, localCli, ['a', 'b']);
  world.advance(30 * second);
  await requestRenewals(vault, localCli, ['c', 'd']);
  assert.deepEqual(await waits(vault), { a: 0, b: 30, c: 90, d: 150 });
});

test('no renewal waits beyond its scheduled time, and a request for a single certificate ends its wait', async (t) => {
  const { vault } = await testVault(t);
  await silentIssuer(vault, 'ca');
  await made(vault, 'ca', 'a', 'b', 'c', 'd');
  await change(vault, 'b', { next_renewal_at: vault.world.now() - day });
  await change(vault, 'c', { next_renewal_at: vault.world.now() + 70 * second });
  await requestRenewals(vault, localCli, ['a', 'b', 'c', 'd']);
  assert.deepEqual(await waits(vault), { a: 0, b: 0, c: 70, d: 180 });
  const { held_until, hold_reason } = await requestRenewal(vault, localCli, 'd');
  assert.deepEqual([held_until, hold_reason], [null, null]);
  assert.deepEqual(await waits(vault), { a: 0, b: 0, c: 70, d: 0 });
});

test('more than 1440 renewals are spread over one day', async (t) => {
  const { vault } = await testVault(t);
  await silentIssuer(vault, 'ca');
  await made(vault, 'ca', 'first', 'last');
  const gone = Array.from({ length: 2878 }, (_, index) => `gone-${index}`);
  const { queued, lastAt } = await requestRenewals(vault, localCli, ['first', ...gone, 'last']);
  assert.deepEqual([queued, lastAt], [2, vault.world.now() + 30 * second]);
});

test('certificates that are imported, disabled or deleted are skipped', async (t) => {
  const { vault } = await testVault(t);
  await made(vault, 'local-ca', 'a', 'b', 'c');
  await change(vault, 'a', { disabled_at: 1 });
  await change(vault, 'b', { issuer_id: null });
  assert.equal((await requestRenewals(vault, localCli, ['a', 'b', 'c', 'gone'])).queued, 1);
  assert.deepEqual(await waits(vault), { c: 0 });
});
