/** Renewals as they are asked for: one open per certificate, however many ask, and queued when their moment comes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { minute } from '../../../src/base/duration.ts';
import { toJson } from '../../../src/base/json.ts';
import { Problem, type ProblemCode } from '../../../src/base/problem.ts';
import { insertCertificate, updateCertificate } from '../../../src/db/tables/certificates/certificates.ts';
import { updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { type Actor, localCli } from '../../../src/domain/audit/audit.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { queueDueRenewals, requestRenewal, requireRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireCertificate } from '../../../src/domain/versions/certificate-lookup.ts';
import { testVault } from '../../harness/test-vault.ts';

const actor: Actor = { name: 'api-key:1:deploy', ip: '192.0.2.1' };

async function vaultWith(t: Parameters<typeof testVault>[0], ...names: string[]) {
  const opened = await testVault(t);
  for (const name of names) {
    const input = parseInput(createCertificateInput, { name, domains: ['a.example'] });
    await createCertificate(opened.vault, localCli, input);
  }
  return opened;
}

const rejects = (work: Promise<unknown>, code: ProblemCode) =>
  assert.rejects(work, (error) => error instanceof Problem && error.code === code);

const finish = ({ db }: Vault, id: number) =>
  db.write((writer) => updateRenewal(writer, id, { status: 'succeeded' }));

const requests = ({ db }: Vault) =>
  db.reader
    .selectFrom('audit_events')
    .select(['actor', 'resource', 'ip'])
    .where('action', '=', 'renewal.request')
    .orderBy('id')
    .execute();

async function dueAt(vault: Vault, name: string): Promise<number> {
  const { next_renewal_at } = await requireCertificate(vault.db.reader, name);
  assert(next_renewal_at !== null);
  return next_renewal_at;
}

test('a requested renewal is queued, recorded, and wakes the worker', async (t) => {
  const { vault, world } = await vaultWith(t, 'a');
  const ring = t.mock.method(vault.renewalQueued, 'notify');
  const renewal = await requestRenewal(vault, actor, 'a');
  assert.equal(renewal.status, 'queued');
  assert.equal(renewal.certificate, 'a');
  assert.equal(renewal.requested_at, world.now());
  assert.equal(renewal.requested_by, actor.name);
  assert.equal(ring.mock.callCount(), 1);
  assert.deepEqual(await requests(vault), [
    { actor: actor.name, resource: 'certificate:a', ip: '192.0.2.1' },
  ]);
});

test('ten concurrent requests create one renewal with one audit event', async (t) => {
  const { vault } = await vaultWith(t, 'a');
  const asked = await Promise.all(Array.from({ length: 10 }, () => requestRenewal(vault, actor, 'a')));
  assert.deepEqual(new Set(asked.map(({ id }) => id)), new Set([1]));
  assert.equal((await requests(vault)).length, 1);
});

for (const status of ['queued', 'running'] as const) {
  test(`a request while a renewal is ${status} returns that renewal`, async (t) => {
    const { vault } = await vaultWith(t, 'a');
    const { id } = await requestRenewal(vault, actor, 'a');
    await vault.db.write((writer) => updateRenewal(writer, id, { status }));
    assert.equal((await requestRenewal(vault, localCli, 'a')).id, id);
  });
}

for (const status of ['succeeded', 'failed'] as const) {
  test(`a request after a renewal has ${status} creates a new one`, async (t) => {
    const { vault } = await vaultWith(t, 'a');
    const { id } = await requestRenewal(vault, actor, 'a');
    await vault.db.write((writer) => updateRenewal(writer, id, { status }));
    assert.equal((await requestRenewal(vault, actor, 'a')).id, id + 1);
  });
}

test('requireRenewal finds a renewal only under its own certificate', async (t) => {
  const { vault } = await vaultWith(t, 'a', 'b');
  const [a, b] = [await requestRenewal(vault, actor, 'a'), await requestRenewal(vault, actor, 'b')];
  assert.notEqual(a.id, b.id);
  assert.equal((await requireRenewal(vault, 'a', a.id)).certificate, 'a');
  await rejects(requireRenewal(vault, 'a', b.id), 'not_found');
  await rejects(requireRenewal(vault, 'a', 99), 'not_found');
  await rejects(requireRenewal(vault, 'c', a.id), 'certificate_not_found');
});

test('requests for imported and missing certificates are rejected, and nothing is recorded', async (t) => {
  const { vault } = await vaultWith(t);
  const imported = { name: 'i', domains: toJson([]), key_type: 'x', issuer_id: null, created_at: 1 };
  await vault.db.write((writer) => insertCertificate(writer, { ...imported, auto_renew: 0, reuse_key: 0 }));
  await rejects(requestRenewal(vault, actor, 'i'), 'not_renewable');
  await rejects(requestRenewal(vault, actor, 'missing'), 'certificate_not_found');
  assert.deepEqual(await requests(vault), []);
});

test('a renewal is queued when due, and not a millisecond before', async (t) => {
  const { vault, world } = await vaultWith(t, 'a');
  world.advance((await dueAt(vault, 'a')) - world.now() - 1);
  assert.equal(await queueDueRenewals(vault, 100), 0);
  world.advance(1);
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.deepEqual(await requests(vault), [{ actor: 'system', resource: 'certificate:a', ip: null }]);
});

test('a due certificate is queued only once while its renewal is open', async (t) => {
  const { vault, world } = await vaultWith(t, 'a', 'b');
  world.advance(Math.max(await dueAt(vault, 'a'), await dueAt(vault, 'b')) - world.now());
  const { id } = await requestRenewal(vault, actor, 'a');
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.equal(await queueDueRenewals(vault, 100), 0);
  await finish(vault, id);
  assert.equal(await queueDueRenewals(vault, 100), 1);
});

test('at most the requested number is queued at a time, the longest due first', async (t) => {
  const { vault, world } = await vaultWith(t, 'a', 'b', 'c');
  const order = ['b', 'c', 'a'];
  for (const [index, name] of order.entries()) {
    const { id } = await requireCertificate(vault.db.reader, name);
    const next_renewal_at = world.now() + index * minute;
    await vault.db.write((writer) => updateCertificate(writer, id, { next_renewal_at }));
  }
  world.advance(10 * minute);
  assert.equal(await queueDueRenewals(vault, 2), 2);
  assert.equal(await queueDueRenewals(vault, 2), 1);
  assert.deepEqual(
    (await requests(vault)).map(({ resource }) => resource),
    order.map((name) => `certificate:${name}`),
  );
});

test('a certificate without automatic renewal is not queued, but can be renewed on request', async (t) => {
  const { vault, world } = await vaultWith(t, 'a');
  await vault.db.write((writer) => updateCertificate(writer, 1, { auto_renew: 0 }));
  world.advance((await dueAt(vault, 'a')) - world.now());
  assert.equal(await queueDueRenewals(vault, 100), 0);
  assert.equal((await requestRenewal(vault, actor, 'a')).status, 'queued');
});

test('a clock that jumps ahead makes everything due once, and one that jumps back nothing', async (t) => {
  const { vault, world } = await vaultWith(t, 'a');
  world.advance(-100 * 365 * 24 * 60 * minute);
  assert.equal(await queueDueRenewals(vault, 100), 0);
  world.advance(200 * 365 * 24 * 60 * minute);
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.equal(await queueDueRenewals(vault, 100), 0);
});
