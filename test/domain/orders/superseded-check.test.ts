/**
 * An order that waits for something that may never come ends when nobody wants it any more, and takes its records with
 * it.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { minute, second } from '../../../src/base/duration.ts';
import { findCertificateById } from '../../../src/db/tables/certificates/certificates.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import type { OrderProgress } from '../../../src/domain/orders/order-progress.ts';
import { runUnlessSuperseded } from '../../../src/domain/orders/superseded-check.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { challengeRows, engine, issuedBy, tryWork } from '../../harness/issuance/engine-vault.ts';
import { statusesOf } from '../../harness/issuance/renewal-fixtures.ts';

/** Makes the change when the vault looks for its record the first time; nobody ever sees that record. */
async function changedWhileWaiting(t: TestContext, change: (vault: Vault) => Promise<unknown>) {
  const opened = await engine(t, { zones: ['example.test'] });
  const { vault, zone, world } = opened;
  let looks = 0;
  const txt = async () => {
    looks += 1;
    if (looks === 1) await change(vault);
    return [];
  };
  Object.assign(zone.resolver, { txt });
  const began = world.now();
  const ended = await tryWork(vault);
  assert(looks > 0);
  assert(world.now() - began < 2 * minute, 'it went on waiting');
  assert.deepEqual(await challengeRows(vault), []);
  assert.deepEqual([...zone.records], []);
  assert.equal(issuedBy(opened.ca), 0);
  return { ...opened, ended };
}

const update = (input: object) => (vault: Vault) =>
  changeCertificate(vault, localCli, 'www', parseInput(updateCertificateInput, input));

test('a renewal waiting for its record ends when the certificate is disabled, and is not queued again', async (t) => {
  const { vault, ended } = await changedWhileWaiting(t, update({ disabled: true }));
  assert.equal(ended?.error, 'the certificate was disabled');
  assert.deepEqual(await statusesOf(vault), ['failed']);
});

test('a renewal waiting for its record ends when the names change, and a new one is queued', async (t) => {
  const { vault, ended } = await changedWhileWaiting(t, update({ domains: ['right.example.test'] }));
  assert.equal(ended?.error, 'the names or the key type were changed');
  assert.deepEqual(await statusesOf(vault), ['failed', 'queued']);
});

test('a renewal waiting for its record is deleted with its certificate', async (t) => {
  const { vault, ended } = await changedWhileWaiting(t, (opened) =>
    deleteCertificate(opened, localCli, 'www', { force: true }),
  );
  assert.equal(ended, undefined);
  assert.deepEqual(await statusesOf(vault), []);
});

test('a record presented while its certificate is deleted is removed', async (t) => {
  const { vault, zone, ca } = await engine(t, { zones: ['example.test'] });
  const { present } = zone.provider;
  const presentAndDelete: typeof present = async (record, signal) => {
    await present(record, signal);
    await deleteCertificate(vault, localCli, 'www', { force: true });
  };
  Object.assign(zone.provider, { present: presentAndDelete });
  assert.equal(await tryWork(vault), undefined);
  assert.deepEqual(zone.done, [
    'present _acme-challenge.www.example.test',
    'remove _acme-challenge.www.example.test',
  ]);
  assert.deepEqual(await challengeRows(vault), []);
  assert.equal(issuedBy(ca), 0);
});

test('an attempt whose work ends during a check of its certificate is not stopped', async (t) => {
  const { vault, world } = await engine(t);
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  const certificate = await findCertificateById(vault.db.reader, claimed.renewal.certificate_id);
  await deleteCertificate(vault, localCli, 'www', { force: true });
  const stops: string[] = [];
  const { signal } = new AbortController();
  const stop = (reason: string) => stops.push(reason);
  const attempt = { certificate, renewal: claimed.renewal, signal, stop } as unknown as OrderProgress;
  const work = Promise.withResolvers<string>();
  // The work ends when the check asks for the certificate, before the answer.
  const db = new Proxy(vault.db, {
    get(target, name) {
      if (name === 'reader') work.resolve('issued');
      return Reflect.get(target, name, target);
    },
  });
  const running = runUnlessSuperseded({ ...vault, db }, attempt, () => work.promise);
  world.advance(20 * second);
  assert.equal(await running, 'issued');
  assert.deepEqual(stops, []);
});
