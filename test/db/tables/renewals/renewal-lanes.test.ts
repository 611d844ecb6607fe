/** The lanes of the queue: each has its most urgent renewal as its head, and what is paused or held is passed over. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hour } from '../../../../src/base/duration.ts';
import { toJson } from '../../../../src/base/json.ts';
import { updateAcmeIssuer } from '../../../../src/db/tables/issuance/issuers.ts';
import { listLaneHeads, listLeftRenewals } from '../../../../src/db/tables/renewals/renewal-lanes.ts';
import { updateRenewal } from '../../../../src/db/tables/renewals/renewals.ts';
import { endAll, makeCertificate, silentIssuer } from '../../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../../harness/test-vault.ts';

/** Four renewals in each of three lanes at two ACME issuers and one at the private CA, the later ones more urgent. */
async function prepared(t: TestContext) {
  const { vault, world } = await testVault(t);
  const issuers = [await silentIssuer(vault, 'one'), await silentIssuer(vault, 'two')] as const;
  await makeCertificate(vault, 'a', { issuer: 'one' });
  await endAll(vault);
  const ids = new Map<string, number>();
  const queue = async (name: string, issuer_id: number | null, dns_lane: number, urgent_at: number) =>
    vault.db.write(async (writer) => {
      const settings = { key_type: 'ec256', auto_renew: 1, reuse_key: 0, created_at: 0 } as const;
      const row = await writer
        .insertInto('certificates')
        .values({ ...settings, name, domains: toJson([]) })
        .returning('id')
        .executeTakeFirstOrThrow();
      const renewal = await writer
        .insertInto('renewals')
        .values({
          ...{
            certificate_id: row.id,
            status: 'queued',
            requested_by: 'system',
            requested_at: 0,
          },
          ...{ issuer_id, dns_lane, urgent_at },
        })
        .returning('id')
        .executeTakeFirstOrThrow();
      ids.set(name, renewal.id);
    });
  let urgent = 100;
  for (let n = 1; n <= 4; n += 1) {
    for (const [at, issuer] of issuers.entries()) {
      for (const lane of [0, 3, 7]) await queue(`${at + 1}/${lane}/${n}`, issuer, lane, urgent--);
    }
  }
  await queue('own', 1, 0, 50);
  await queue('orphan', null, 0, 60);
  const nameOf = (id: number) => [...ids].find(([, one]) => one === id)?.[0];
  const heads = async () => (await listLaneHeads(vault.db.reader, world.now())).map(({ id }) => nameOf(id));
  const change = (name: string, changes: object) =>
    vault.db.write((writer) => updateRenewal(writer, ids.get(name) ?? 0, changes));
  return { vault, world, issuers, heads, change, nameOf };
}

test('each lane has its most urgent renewal as its head, and the most urgent lane comes first', async (t) => {
  const { heads, vault } = await prepared(t);
  assert.deepEqual(await heads(), ['own', 'orphan', '2/7/4', '2/3/4', '2/0/4', '1/7/4', '1/3/4', '1/0/4']);
  const lanes = await listLaneHeads(vault.db.reader, 0);
  assert.deepEqual(
    lanes.map(({ is_acme }) => is_acme),
    [0, 0, 1, 1, 1, 1, 1, 1],
  );
  await vault.db.write((writer) =>
    writer
      .insertInto('dns_providers')
      .values({
        id: 7,
        name: 'people',
        type: 'manual',
        zones: toJson([]),
        sealed_secret: Buffer.of(1),
        created_at: 0,
      })
      .execute(),
  );
  assert.deepEqual(
    (await listLaneHeads(vault.db.reader, 0)).map(({ is_by_hand }) => is_by_hand),
    [0, 0, 1, 0, 0, 1, 0, 0],
  );
});

test('held renewals and the lanes of a paused issuer are skipped until their time', async (t) => {
  const { heads, change, world, vault, issuers } = await prepared(t);
  for (const n of [4, 3]) await change(`2/7/${n}`, { held_until: world.now() + hour });
  for (const n of [1, 2, 3, 4]) await change(`1/0/${n}`, { held_until: world.now() + hour });
  assert.deepEqual(await heads(), ['own', 'orphan', '2/3/4', '2/0/4', '1/7/4', '1/3/4', '2/7/2']);
  await vault.db.write((writer) =>
    updateAcmeIssuer(writer, issuers[1], { paused_until: world.now() + 2 * hour }),
  );
  assert.deepEqual(await heads(), ['own', 'orphan', '1/7/4', '1/3/4']);
  world.advance(hour);
  assert.deepEqual(await heads(), ['own', 'orphan', '1/7/4', '1/3/4', '1/0/4']);
  world.advance(hour);
  assert.equal((await heads()).length, 8);
});

test('listLeftRenewals returns only renewals whose lease has expired', async (t) => {
  const { change, world, vault, nameOf } = await prepared(t);
  await change('1/3/2', { status: 'running', lease_expires_at: world.now() });
  await change('2/3/2', { status: 'running', lease_expires_at: world.now() + 1 });
  const left = await listLeftRenewals(vault.db.reader, world.now());
  assert.deepEqual(
    left.map(({ id }) => nameOf(id)),
    ['1/3/2'],
  );
});
