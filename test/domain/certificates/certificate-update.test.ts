/**
 * Changing a certificate: what it is to have is renewed for at once, how it is renewed counts from the next time on.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour, minute } from '../../../src/base/duration.ts';
import { Problem } from '../../../src/base/problem.ts';
import type { CertificateRow } from '../../../src/db/tables/certificates/certificates.ts';
import { findIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { findRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { type Actor, localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { runRenewal } from '../../../src/domain/renewals/renewal-run.ts';
import { queueDueRenewals, requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { importOne } from '../../harness/http/fixtures.ts';
import {
  change,
  endAll,
  forever,
  giveVersion,
  makeCertificate,
  rowOf,
  silentIssuer,
  statusesOf,
} from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const actor: Actor = { name: 'admin:alice', ip: '192.0.2.1' };

const update = (vault: Vault, input: object, name = 'www') =>
  changeCertificate(vault, actor, name, parseInput(updateCertificateInput, input));

/** A certificate of the private CA with three names, and two ACME issuers beside it. */
async function prepared(t: TestContext, others: object = {}) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  const issuers = { one: await silentIssuer(vault, 'one'), other: await silentIssuer(vault, 'other') };
  const domains = ['a.example', 'b.example', 'c.example'];
  await makeCertificate(vault, 'www', { domains, ...others });
  world.advance(hour);
  return { ...opened, issuers };
}

const refuses = (work: Promise<unknown>, code: string, path?: string) =>
  assert.rejects(work, (error) => {
    assert(error instanceof Problem, String(error));
    assert.equal(error.code, code);
    if (path !== undefined)
      assert.deepEqual(
        error.body.errors?.map((one) => one.path),
        [path],
      );
    return true;
  });

async function renewed(vault: Vault, id: number | undefined) {
  const claimed = await claimRenewal(vault, 'worker');
  assert.equal(claimed?.renewal.id, id);
  assert(claimed);
  await runRenewal(vault, claimed, forever);
  return findRenewal(vault.db.reader, claimed.renewal.id);
}

async function events({ db }: Vault) {
  const query = db.reader.selectFrom('audit_events').select(['actor', 'action', 'resource', 'detail', 'ip']);
  const rows = await query.orderBy('id').execute();
  return rows.filter(({ actor: name }) => name === actor.name);
}

test('changing the domains queues and audits a renewal, which issues a version with them', async (t) => {
  const { vault } = await prepared(t);
  const ring = t.mock.method(vault.renewalQueued, 'notify');
  const id = await update(vault, { domains: ['a.example', 'd.example'] });
  assert.equal(ring.mock.callCount(), 1);
  const seen = (await events(vault)).map(({ action, resource, ip, detail }) => [
    action,
    resource,
    ip,
    JSON.parse(detail),
  ]);
  assert.deepEqual(seen, [
    ['certificate.update', 'certificate:www', '192.0.2.1', { domains: ['a.example', 'd.example'] }],
    ['renewal.request', 'certificate:www', '192.0.2.1', { renewal: id }],
  ]);
  assert.equal((await renewed(vault, id))?.status, 'succeeded');
  const row = await rowOf(vault, 'www');
  assert.deepEqual([row.current_version, row.changed_at], [2, null]);
  const versions = await vault.db.reader
    .selectFrom('certificate_versions')
    .select('domains')
    .orderBy('id')
    .execute();
  assert.deepEqual(JSON.parse(versions[1]?.domains ?? ''), ['a.example', 'd.example']);
  assert((row.next_renewal_at ?? 0) > vault.world.now() + 50 * day);
});

test('the same domains reordered and repeated change nothing', async (t) => {
  const { vault } = await prepared(t);
  const before = await rowOf(vault, 'www');
  const domains = ['c.example', 'a.example', 'b.example', 'a.example'];
  assert.equal(await update(vault, { domains }), undefined);
  assert.deepEqual(await rowOf(vault, 'www'), before);
  assert.deepEqual(await statusesOf(vault), []);
});

test('changing the key type queues a renewal, and the same key type does not', async (t) => {
  const { vault } = await prepared(t);
  assert.equal(await update(vault, { key_type: 'ec256' }), undefined);
  assert.equal((await rowOf(vault, 'www')).changed_at, null);
  const id = await update(vault, { key_type: 'ec384' });
  assert.equal((await renewed(vault, id))?.status, 'succeeded');
  const { key_type } = await vault.db.reader
    .selectFrom('certificate_versions')
    .select('key_type')
    .where('version', '=', 2)
    .executeTakeFirstOrThrow();
  assert.equal(key_type, 'ec384');
});

test('a change during a renewal joins it, and is queued again after that renewal issued the old names', async (t) => {
  const { vault, world } = await prepared(t);
  const open = await requestRenewal(vault, localCli, 'www');
  const claimed = await claimRenewal(vault, 'worker');
  assert(claimed);
  const write = vault.db.write.bind(vault.db);
  let joined: number | undefined;
  // The first transaction of the renewal comes after it has read the old names.
  const between = t.mock.method(vault.db, 'write', async (work: Parameters<typeof write>[0]) => {
    between.mock.restore();
    joined = await update(vault, { domains: ['z.example'] });
    return write(work);
  });
  await runRenewal(vault, claimed, forever);
  assert.equal(joined, open.id);
  world.advance(minute);
  const names = async () => {
    const query = vault.db.reader.selectFrom('certificate_versions').select('domains');
    return JSON.parse((await query.orderBy('id', 'desc').executeTakeFirstOrThrow()).domains);
  };
  assert.deepEqual(await names(), ['a.example', 'b.example', 'c.example']);
  assert.notEqual((await rowOf(vault, 'www')).changed_at, null);
  assert.equal(await queueDueRenewals(vault, 100), 1);
  const next = await claimRenewal(vault, 'worker');
  assert(next);
  await runRenewal(vault, next, forever);
  assert.deepEqual(await names(), ['z.example']);
  assert.equal((await rowOf(vault, 'www')).changed_at, null);
});

test('changing domains, key type or issuer resets the failed attempts, and changing reuse_key does not', async (t) => {
  const { vault, world } = await prepared(t);
  const failed = { failed_attempts: 5, last_attempt_at: world.now(), retry_after: world.now() + day };
  for (const input of [{ domains: ['z.example'] }, { key_type: 'ec384' }, { issuer: 'one' }]) {
    await change(vault, 'www', failed);
    await update(vault, input);
    const row = await rowOf(vault, 'www');
    assert.deepEqual([row.failed_attempts, row.retry_after], [0, null], JSON.stringify(input));
  }
  await change(vault, 'www', failed);
  await update(vault, { reuse_key: true });
  assert.equal((await rowOf(vault, 'www')).failed_attempts, 5);
});

const quiet: Readonly<Record<string, readonly [object, Partial<CertificateRow>]>> = {
  'keep its key': [{ reuse_key: true }, { reuse_key: 1 }],
  'use a new key each time': [{ reuse_key: false }, { reuse_key: 0 }],
  'stop renewing automatically': [{ auto_renew: false }, { auto_renew: 0, next_renewal_at: null }],
  'have no fallback issuer': [{ fallback_issuer: null }, { fallback_issuer_id: null }],
};

for (const [what, [input, expected]] of Object.entries(quiet)) {
  test(`changing a certificate to ${what} takes effect without a renewal`, async (t) => {
    const { vault } = await prepared(t, { fallback_issuer: 'one' });
    const before = await rowOf(vault, 'www');
    assert.equal(await update(vault, input), undefined);
    assert.deepEqual(await rowOf(vault, 'www'), { ...before, ...expected });
    assert.deepEqual(await statusesOf(vault), []);
  });
}

test('a disabled certificate is neither queued nor renewed, and once enabled is scheduled as before', async (t) => {
  const { vault, world } = await prepared(t);
  const planned = (await rowOf(vault, 'www')).next_renewal_at;
  await update(vault, { disabled: true });
  const since = (await rowOf(vault, 'www')).disabled_at;
  assert.equal(since, world.now());
  assert.equal((await rowOf(vault, 'www')).next_renewal_at, null);
  world.advance(minute);
  await update(vault, { disabled: true });
  assert.equal((await rowOf(vault, 'www')).disabled_at, since);
  await refuses(requestRenewal(vault, actor, 'www'), 'not_renewable');
  world.advance(30 * day);
  await update(vault, { disabled: false });
  assert.equal((await rowOf(vault, 'www')).next_renewal_at, planned);
  await update(vault, { disabled: true });
  world.advance(59 * day);
  assert.equal(await queueDueRenewals(vault, 100), 0);
  await update(vault, { disabled: false });
  assert.equal(await queueDueRenewals(vault, 100), 1);
});

test('a change to a disabled certificate is renewed once the certificate is enabled', async (t) => {
  const { vault } = await prepared(t);
  await update(vault, { disabled: true });
  assert.equal(await update(vault, { domains: ['z.example'] }), undefined);
  assert.equal(await queueDueRenewals(vault, 100), 0);
  await update(vault, { disabled: false });
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.equal((await renewed(vault, 1))?.status, 'succeeded');
});

test('a queued renewal of a disabled certificate ends without a version or a counted failure', async (t) => {
  const { vault } = await prepared(t);
  const { id } = await requestRenewal(vault, localCli, 'www');
  await update(vault, { disabled: true });
  const ended = await renewed(vault, id);
  assert.deepEqual([ended?.status, ended?.error], ['failed', 'the certificate is disabled']);
  const row = await rowOf(vault, 'www');
  assert.deepEqual(
    [row.failed_attempts, row.last_error, row.next_renewal_at, row.current_version],
    [0, null, null, 1],
  );
});

test('specifying an issuer for an imported certificate queues a renewal and enables automatic renewal', async (t) => {
  const { vault, issuers } = await prepared(t);
  await importOne(vault, 'imported', { chain: true });
  await refuses(update(vault, { reuse_key: true }, 'imported'), 'not_renewable');
  const id = await update(vault, { issuer: 'local-ca' }, 'imported');
  assert.equal((await renewed(vault, id))?.status, 'succeeded');
  const row = await rowOf(vault, 'imported');
  assert.deepEqual([row.auto_renew, row.current_version], [1, 2]);
  assert((row.next_renewal_at ?? 0) > vault.world.now() + 50 * day);
  await importOne(vault, 'second', { chain: true });
  const at = await update(vault, { issuer: 'one' }, 'second');
  assert.equal((await findRenewal(vault.db.reader, at ?? 0))?.issuer_id, issuers.one);
});

test('a certificate moved to another issuer and back keeps its ARI renewal time and is queued when due', async (t) => {
  const { vault, world, issuers } = await prepared(t);
  const planned = (await rowOf(vault, 'www')).next_renewal_at;
  await change(vault, 'www', { ari_renew_at: world.now() + day });
  assert.equal(await update(vault, { issuer: 'one' }), undefined);
  const row = await rowOf(vault, 'www');
  const moment = world.now() + day;
  assert.deepEqual([row.issuer_id, row.ari_renew_at, row.next_renewal_at], [issuers.one, moment, moment]);
  assert(planned !== null && moment < planned);
  assert.equal(await update(vault, { issuer: 'local-ca' }), undefined);
  assert.equal((await rowOf(vault, 'www')).ari_renew_at, moment);
  await update(vault, { issuer: 'one' });
  world.advance(61 * day);
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.equal((await findRenewal(vault.db.reader, 1))?.issuer_id, issuers.one);
});

test('moving a certificate from the private CA to an ACME CA clears its lifetime', async (t) => {
  const { vault, issuers } = await prepared(t, { lifetime: '30d' });
  await update(vault, { issuer: 'one' });
  const row = await rowOf(vault, 'www');
  assert.deepEqual([row.issuer_id, row.lifetime], [issuers.one, null]);
});

test('a queued renewal uses the new issuer after the certificate is moved', async (t) => {
  const { vault } = await prepared(t, { issuer: 'one' });
  await update(vault, { issuer: 'local-ca' });
  const local = (await findIssuer(vault.db.reader, 'local-ca'))?.id;
  assert.equal((await rowOf(vault, 'www')).issuer_id, local);
  assert.equal((await renewed(vault, 1))?.status, 'succeeded');
  assert.equal((await rowOf(vault, 'www')).current_version, 1);
});

const unsuitable: Readonly<Record<string, readonly [certificate: object, input: object, path: string]>> = {
  'an issuer that does not exist': [{}, { issuer: 'nobody' }, 'issuer'],
  'a fallback that does not exist': [{}, { fallback_issuer: 'nobody' }, 'fallback_issuer'],
  'an Ed25519 key at an ACME CA': [{ issuer: 'one' }, { key_type: 'ed25519' }, 'key_type'],
  'an ACME CA for an Ed25519 key': [{ key_type: 'ed25519' }, { issuer: 'one' }, 'key_type'],
  'a profile at the private CA': [{}, { profile: 'shortlived' }, 'profile'],
  'a challenge at the private CA': [{}, { challenge: 'http-01' }, 'challenge'],
  'the private CA for one with a profile': [
    { issuer: 'one', profile: 'shortlived' },
    { issuer: 'local-ca' },
    'profile',
  ],
  'a wildcard with http-01': [
    { issuer: 'one', challenge: 'http-01' },
    { domains: ['*.example.com'] },
    'challenge',
  ],
  'tls-alpn-01 for a wildcard': [
    { issuer: 'one', domains: ['*.example.com'], challenge: 'dns-01' },
    { challenge: 'tls-alpn-01' },
    'challenge',
  ],
  'an ACME CA as the fallback of an Ed25519 key': [
    { key_type: 'ed25519' },
    { fallback_issuer: 'one' },
    'fallback_issuer',
  ],
  'an Ed25519 key with an ACME CA as its fallback': [
    { fallback_issuer: 'one' },
    { key_type: 'ed25519' },
    'fallback_issuer',
  ],
  'dns-01 for an address': [{ issuer: 'one', domains: ['192.0.2.1'] }, { challenge: 'dns-01' }, 'challenge'],
};

for (const [what, [certificate, input, path]] of Object.entries(unsuitable)) {
  test(`${what} is rejected with the path ${path}, and nothing changes`, async (t) => {
    const { vault } = await prepared(t, certificate);
    const before = [await rowOf(vault, 'www'), await statusesOf(vault)];
    await refuses(update(vault, input), 'invalid_request', path);
    assert.deepEqual([await rowOf(vault, 'www'), await statusesOf(vault)], before);
    assert.deepEqual(await events(vault), []);
  });
}

test('null clears profile and challenge in the same update that moves the certificate to the private CA', async (t) => {
  const { vault } = await prepared(t, { issuer: 'one', profile: 'shortlived', challenge: 'http-01' });
  await update(vault, { issuer: 'local-ca', profile: null, challenge: null });
  const row = await rowOf(vault, 'www');
  assert.deepEqual([row.profile, row.challenge], [null, null]);
});

test('an unknown certificate is rejected with the closest name', async (t) => {
  const { vault } = await prepared(t);
  await assert.rejects(update(vault, {}, 'ww'), (error) => {
    assert(error instanceof Problem);
    assert.match(error.body.detail, /Did you mean "www"/);
    return true;
  });
});

test('nothing changes when the transaction of an update fails', async (t) => {
  const { vault } = await prepared(t);
  const before = await rowOf(vault, 'www');
  const original = vault.db.write.bind(vault.db);
  t.mock.method(vault.db, 'write', (work: Parameters<typeof original>[0]) =>
    original(async (writer) => {
      await work(writer);
      throw new Error('no room');
    }),
  );
  await assert.rejects(update(vault, { domains: ['z.example'] }), /no room/);
  assert.deepEqual(await rowOf(vault, 'www'), before);
  assert.deepEqual(await statusesOf(vault), []);
});

test('a certificate without a version is ordered from the new issuer after a move', async (t) => {
  const { vault, world, issuers } = await prepared(t, { issuer: 'one' });
  await endAll(vault);
  await change(vault, 'www', { failed_attempts: 3, last_attempt_at: world.now() });
  await update(vault, { issuer: 'other' });
  assert.equal(await queueDueRenewals(vault, 100), 1);
  assert.equal((await findRenewal(vault.db.reader, 2))?.issuer_id, issuers.other);
  await endAll(vault);
  await giveVersion(vault, 'www');
  assert.equal(await queueDueRenewals(vault, 100), 0);
});

test('the lifetime is changed and cleared without a renewal, and rejected for an ACME issuer', async (t) => {
  const { vault } = await prepared(t);
  assert.equal(await update(vault, { lifetime: '10d' }), undefined);
  assert.equal((await rowOf(vault, 'www')).lifetime, 10 * day);
  assert.equal(await update(vault, { lifetime: null }), undefined);
  assert.equal((await rowOf(vault, 'www')).lifetime, null);
  await refuses(update(vault, { issuer: 'one', lifetime: '10d' }), 'invalid_request', 'lifetime');
});
