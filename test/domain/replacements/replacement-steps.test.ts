/** The order of a replacement: no version is revoked before its successor is live, or before the deadline. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Updateable } from 'kysely';
import { day, hour, minute, second } from '../../../src/base/duration.ts';
import type { Json } from '../../../src/base/json.ts';
import type { ReplacementCertificatesTable } from '../../../src/db/schema/schema-replacements.ts';
import { insertReplacement, insertReplacementCertificates } from '../../../src/db/tables/replacements.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { workReplacements } from '../../../src/domain/replacements/replacement-round.ts';
import { viewReplacement } from '../../../src/domain/replacements/replacement-views.ts';
import { cancelReplacement, requireReplacement } from '../../../src/domain/replacements/replacements.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireVersion } from '../../../src/domain/versions/versions.ts';
import { problem } from '../../harness/ca/scripted-acme.ts';
import { engine, tryWork } from '../../harness/issuance/engine-vault.ts';
import { workerOn } from '../../harness/issuance/engine-worker.ts';
import { change, makeCertificate, rowOf, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';
import { progressOf, renewed, replace, reporting, round } from '../../harness/issuance/replacements.ts';

/** A vault whose certificate `www` has a version of an ACME CA. */
async function issued(t: TestContext, certificate: object = {}) {
  const opened = await engine(t, { certificate });
  assert.equal((await opened.work()).status, 'succeeded');
  return opened;
}

const serialOf = async (vault: Vault, number: number) =>
  (await requireVersion(vault.db.reader, await rowOf(vault, 'www'), number)).serial.toLowerCase();

/** The revoked versions of `www`. */
async function revokedOf(vault: Vault, name = 'www'): Promise<number[]> {
  const { id } = await rowOf(vault, name);
  const rows = await vault.db.reader
    .selectFrom('certificate_versions')
    .select('version')
    .where('certificate_id', '=', id)
    .where('revoked_at', 'is not', null)
    .orderBy('version')
    .execute();
  return rows.map(({ version }) => version);
}

/** Changes the rows of a replacement behind the back of the vault. */
async function forge(vault: Vault, id: number, changes: Updateable<ReplacementCertificatesTable>) {
  await vault.db.write((writer) =>
    writer.updateTable('replacement_certificates').set(changes).where('replacement_id', '=', id).execute(),
  );
}

test('a version is revoked only when every deployment that reports has the new one live', async (t) => {
  const { vault, world, ca } = await issued(t);
  const report = await reporting(vault);
  await report('one', 1);
  await report('two', 1);
  const id = await replace(vault, { certificate: 'www', reason: 'superseded' });
  await renewed({ vault, world });
  assert.deepEqual(await progressOf(vault, id), ['www: issued 0 of 2']);
  await report('one', 2);
  await report('two', 2, { reload: { result: 'failed', output: 'no such unit' } });
  world.advance(5 * second);
  await round(vault);
  assert.deepEqual(await progressOf(vault, id), ['www: issued 1 of 2']);
  assert.equal(ca.state.revoked.size, 0);
  await report('two', 2);
  world.advance(5 * second);
  await round(vault);
  assert.deepEqual(await progressOf(vault, id), ['www: revoked 2 of 2, finished']);
  const [[serial, reason] = []] = [...ca.state.revoked];
  assert.deepEqual([serial?.toLowerCase(), reason], [await serialOf(vault, 1), 4]);
  assert.equal((await viewReplacement(vault, id)).state, 'finished');
});

test('the deadline revokes a version that a deployment still has, and not a moment earlier', async (t) => {
  const { vault, world } = await issued(t);
  const report = await reporting(vault);
  await report('one', 1);
  const id = await replace(vault, { certificate: 'www', reason: 'superseded', deadline: '2h' });
  await renewed({ vault, world });
  world.advance(2 * hour - 5 * second - 1);
  await round(vault);
  assert.deepEqual(await revokedOf(vault), []);
  world.advance(1);
  await round(vault);
  assert.deepEqual(
    [await revokedOf(vault), await progressOf(vault, id)],
    [[1], ['www: revoked 0 of 1, finished']],
  );
});

test('a certificate of which no place is known waits for the deadline', async (t) => {
  const { vault, world } = await issued(t);
  const id = await replace(vault, { certificate: 'www' });
  await renewed({ vault, world });
  world.advance(hour - minute);
  await round(vault);
  assert.deepEqual([await revokedOf(vault), await progressOf(vault, id)], [[], ['www: issued']]);
  world.advance(minute);
  await round(vault);
  assert.deepEqual(await revokedOf(vault), [1]);
});

test('the deadline 0 revokes a version of the private CA as soon as the new one is issued, not before', async (t) => {
  const { vault, world } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'www');
  while ((await tryWork(vault)) !== undefined);
  await replace(vault, { issuer: 'local-ca', deadline: '0' });
  world.advance(day);
  await round(vault);
  assert.deepEqual([await revokedOf(vault), (await statusesOf(vault)).at(-1)], [[], 'queued']);
  await renewed({ vault, world });
  assert.deepEqual([await revokedOf(vault), (await rowOf(vault, 'www')).current_version], [[1], 2]);
  const { count } = await vault.db.reader
    .selectFrom('revoked_certificates')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  assert.equal(Number(count), 1);
});

test('a compromised key is not reused, and every version that has it is revoked with the reason keyCompromise', async (t) => {
  const { vault, world, work, ca } = await issued(t, { reuse_key: true });
  await requestRenewal(vault, localCli, 'www');
  await work();
  const id = await replace(vault, { certificate: 'www', deadline: '0' });
  await renewed({ vault, world });
  assert.deepEqual(await progressOf(vault, id), ['www: revoked, finished']);
  assert.deepEqual(
    [await revokedOf(vault), [...ca.state.revoked.values()]],
    [
      [1, 2],
      [1, 1],
    ],
  );
});

test('a renewal that was already using the compromised key does not count as the replacement', async (t) => {
  const { vault, world, ca } = await issued(t, { reuse_key: true });
  await requestRenewal(vault, localCli, 'www');
  ca.override('newOrder', async (_, usual) => {
    await replace(vault, { certificate: 'www', deadline: '0' });
    return usual();
  });
  await tryWork(vault);
  assert.deepEqual([(await rowOf(vault, 'www')).current_version, await revokedOf(vault)], [2, []]);
  await renewed({ vault, world });
  assert.deepEqual([(await rowOf(vault, 'www')).current_version, await revokedOf(vault)], [3, [1, 2]]);
});

test('a renewal that fails is repeated later, and the other certificates go on', async (t) => {
  const { vault, world, work, ca } = await issued(t);
  for (const name of ['two', 'three']) await makeCertificate(vault, name, { issuer: 'ca' });
  for (let n = 0; n < 2; n += 1) assert.equal((await work()).status, 'succeeded');
  const id = await replace(vault, { issuer: 'ca', deadline: '0' });
  await round(vault);
  ca.override('newOrder', problem('rejectedIdentifier', 'policy forbids'));
  await renewed({ vault, world });
  const [first = '', ...others] = await progressOf(vault, id);
  assert.match(first, /^www: failed; .*policy forbids/);
  assert.deepEqual(others, ['two: revoked, finished', 'three: revoked, finished']);
  assert.deepEqual([await revokedOf(vault), (await viewReplacement(vault, id)).state], [[], 'running']);
  world.advance(minute);
  await renewed({ vault, world });
  assert.deepEqual((await progressOf(vault, id))[0], 'www: revoked, finished');
  assert.equal((await viewReplacement(vault, id)).state, 'finished');
});

test('a revocation that the CA does not carry out is repeated until it does', async (t) => {
  const { vault, world, ca } = await issued(t);
  const id = await replace(vault, { certificate: 'www', reason: 'superseded', deadline: '0' });
  ca.override('revokeCert', problem('serverInternal', 'try later', { status: 500 }));
  await renewed({ vault, world });
  const [first = ''] = await progressOf(vault, id);
  assert.match(first, /^www: issued; .*try later/);
  world.advance(minute);
  await round(vault);
  assert.deepEqual(await progressOf(vault, id), ['www: revoked, finished']);
});

test('a canceled replacement leaves what was issued, and revokes nothing at its deadline', async (t) => {
  const { vault, world } = await issued(t);
  const id = await replace(vault, { certificate: 'www' });
  await renewed({ vault, world });
  await cancelReplacement(vault, localCli, id);
  world.advance(day);
  await round(vault);
  assert.deepEqual(await progressOf(vault, id), ['www: canceled, finished']);
  assert.deepEqual([await revokedOf(vault), (await rowOf(vault, 'www')).current_version], [[], 2]);
  await assert.rejects(cancelReplacement(vault, localCli, id), { code: 'replacement_finished' });
});

/** A replacement of `www` whose old version is no longer installed anywhere, and is due to be revoked. */
async function installedEverywhere(t: TestContext) {
  const scene = await issued(t);
  const report = await reporting(scene.vault);
  await report('one', 1);
  const id = await replace(scene.vault, { certificate: 'www', reason: 'superseded' });
  await renewed(scene);
  await report('one', 2);
  scene.world.advance(5 * second);
  return { ...scene, id };
}

test('a cancellation also stops the revocations that a round has already begun', async (t) => {
  const { vault, world, ca, id } = await installedEverywhere(t);
  const turn = () => cancelReplacement(vault, localCli, id);
  const canceling: Vault = { ...vault, world: Object.assign(Object.create(world), { turn }) };
  await workReplacements(canceling, new AbortController().signal);
  assert.deepEqual(await progressOf(vault, id), ['www: canceled 1 of 1, finished']);
  assert.deepEqual([await revokedOf(vault), ca.state.revoked.size], [[], 0]);
});

test('an unexpected error of one certificate delays only this one', async (t) => {
  const { vault, world } = await engine(t, { certificate: null });
  for (const name of ['bad', 'unreadable', 'late', 'good']) await makeCertificate(vault, name);
  while ((await tryWork(vault)) !== undefined);
  const broken = [
    await replace(vault, { certificate: 'bad', deadline: '0' }),
    await replace(vault, { certificate: 'unreadable', deadline: '0' }),
    await replace(vault, { certificate: 'late', deadline: '10m' }),
  ];
  const good = await replace(vault, { certificate: 'good', deadline: '15m' });
  await change(vault, 'bad', { domains: '[' as Json<never> });
  await round(vault);
  while ((await tryWork(vault)) !== undefined);
  await damageVersions(vault, 'unreadable');
  await renewed({ vault, world });
  await damageVersions(vault, 'late');
  world.advance(15 * minute);
  await round(vault);
  assert.deepEqual(await progressOf(vault, good), ['good: revoked, finished']);
  assert.deepEqual((await Promise.all(broken.map((id) => progressOf(vault, id)))).flat(), [
    'bad: waiting; internal error; see the server log',
    'unreadable: renewing; internal error; see the server log',
    'late: issued; internal error; see the server log',
  ]);
});

async function damageVersions(vault: Vault, name: string): Promise<void> {
  const { id } = await rowOf(vault, name);
  const damage = { certificate_pem: 'no PEM' };
  await vault.db.write((writer) =>
    writer.updateTable('certificate_versions').set(damage).where('certificate_id', '=', id).execute(),
  );
}

test('a large replacement with an earlier deadline does not keep a smaller one from advancing', async (t) => {
  const { vault, world, id } = await installedEverywhere(t);
  const { id: certificate_id } = await rowOf(vault, 'www');
  const now = world.now();
  await vault.db.write(async (writer) => {
    const { id: _, ...large } = await requireReplacement(writer, id);
    const replacement_id = await insertReplacement(writer, { ...large, deadline_at: now + minute });
    const row = { ...{ replacement_id, certificate_id, state: 'issued' as const }, old_version: 2 };
    const rows = Array.from({ length: 100 }, (_, n) => ({ ...row, name: `c${n}`, new_version: 3 }));
    await insertReplacementCertificates(
      writer,
      rows.map((one) => ({ ...one, next_at: now, changed_at: now })),
    );
  });
  await workReplacements(vault, new AbortController().signal);
  assert.deepEqual(await progressOf(vault, id), ['www: revoked 1 of 1, finished']);
});

test('places where nothing changes are checked less and less often, and at the deadline', async (t) => {
  const { vault, world } = await issued(t);
  const report = await reporting(vault);
  await report('one', 1);
  await replace(vault, { certificate: 'www', reason: 'superseded', deadline: '5h' });
  await renewed({ vault, world });
  const start = world.now();
  const nextCheck = async (after: number) => {
    world.advance(start + after - world.now());
    await round(vault);
    const { next_at } = await vault.db.reader
      .selectFrom('replacement_certificates')
      .select('next_at')
      .executeTakeFirstOrThrow();
    return (next_at - world.now()) / second;
  };
  const waits: number[] = [];
  for (const after of [minute, hour, 4 * hour]) waits.push(await nextCheck(after));
  assert.deepEqual(waits, [5, 180, 300]);
  await report('two', 1);
  assert.equal(await nextCheck(4 * hour + 5 * minute), 5);
  // The deadline is 5 seconds earlier than 5 hours after the start.
  assert.equal(await nextCheck(4 * hour + 58 * minute), 115);
});

test('a version without a newer one is renewed, not revoked, in every state that its row may have', async (t) => {
  const { vault } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'www');
  while ((await tryWork(vault)) !== undefined);
  const forged = [
    { state: 'live' },
    { state: 'issued', new_version: 1 },
    { state: 'live', new_version: 2 },
  ] as const;
  for (const forgery of forged) {
    const id = await replace(vault, { certificate: 'www', deadline: '0' });
    await forge(vault, id, forgery);
    await round(vault);
    await round(vault);
    assert.deepEqual([await revokedOf(vault), (await rowOf(vault, 'www')).current_version], [[], 1]);
    assert.deepEqual(await progressOf(vault, id), ['www: renewing'], JSON.stringify(forgery));
    await cancelReplacement(vault, localCli, id);
  }
});

test('replacements of the same certificate all end as revoked', async (t) => {
  const { vault, world } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'www');
  while ((await tryWork(vault)) !== undefined);
  const report = await reporting(vault);
  await report('one', 1);
  const ids: number[] = [];
  for (const reason of ['superseded', 'key-compromised']) {
    ids.push(await replace(vault, { certificate: 'www', reason }));
  }
  await renewed({ vault, world });
  await report('one', 2);
  world.advance(5 * second);
  await round(vault);
  await round(vault);
  for (const id of ids) assert.deepEqual(await progressOf(vault, id), ['www: revoked 1 of 1, finished']);
  assert.deepEqual(await revokedOf(vault), [1]);
});

test('a certificate that is deleted or disabled meanwhile ends as failed with the cause', async (t) => {
  const { vault, world, work } = await issued(t);
  await makeCertificate(vault, 'two', { issuer: 'ca' });
  await work();
  const id = await replace(vault, { issuer: 'ca' });
  await deleteCertificate(vault, localCli, 'www', { force: true });
  await changeCertificate(vault, localCli, 'two', parseInput(updateCertificateInput, { disabled: true }));
  await renewed({ vault, world });
  assert.deepEqual(await progressOf(vault, id), [
    'www: failed, finished; the certificate was deleted',
    'two: failed, finished; it is disabled',
  ]);
  assert.equal((await viewReplacement(vault, id)).state, 'finished');
});

test('a replacement ends with the same outcome after a kill at any of its operations', async (t) => {
  const opened = await issued(t, { reuse_key: true });
  const { vault, world, zone, ca } = opened;
  let version = 1;
  for (let killAt = 1, wasKilled = true; wasKilled; killAt += 1) {
    const id = await replace(vault, { certificate: 'www', deadline: '0' });
    const before = ca.state.revoked.size;
    wasKilled = false;
    let number = 0;
    const watch = ({ moment }: { moment: string }) => {
      if (moment !== 'before' && ++number === killAt) {
        wasKilled = true;
        worker.die();
      }
    };
    const worker = await workerOn(vault, zone, watch);
    for (let rounds = 0; rounds < 4 && !wasKilled; rounds += 1) {
      const work = (async () => {
        await workReplacements(worker.vault, new AbortController().signal);
        await tryWork(vault);
        world.advance(5 * second);
      })();
      await Promise.race([work, worker.died]);
    }
    await renewed(opened);
    await renewed(opened);
    version += 1;
    assert.deepEqual(await progressOf(vault, id), ['www: revoked, finished'], `killed at ${killAt}`);
    assert.equal((await rowOf(vault, 'www')).current_version, version, `killed at ${killAt}`);
    assert.equal(ca.state.revoked.size, before + 1, `killed at ${killAt}`);
  }
  assert(version > 4, String(version));
});
