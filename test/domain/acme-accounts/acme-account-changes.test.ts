/**
 * Changes of an account's key, cut off at any moment and in the middle of orders: the right key is always found again.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hour } from '../../../src/base/duration.ts';
import { findAcmeAccount } from '../../../src/db/tables/issuance/acme-accounts.ts';
import { closeAccount, rolloverAccount } from '../../../src/domain/acme-accounts/acme-account-changes.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { rotateMasterKey } from '../../../src/domain/master-key/master-key-rotation.ts';
import { leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import { problem, type ScriptedReply } from '../../harness/ca/scripted-acme.ts';
import { lookingEngine } from '../../harness/issuance/engine-dns.ts';
import { issues, issuesAnother } from '../../harness/issuance/engine-outcomes.ts';
import { countOf, engine, tryWork, workOn } from '../../harness/issuance/engine-vault.ts';
import { workerOn } from '../../harness/issuance/engine-worker.ts';
import { forever } from '../../harness/issuance/renewal-fixtures.ts';

for (const [when, override] of [
  ['before the CA heard of it', { cutAfter: 0 }],
  [
    'after the CA made it',
    async (_: unknown, usual: () => Promise<ScriptedReply>) => ({ ...(await usual()), cutAfter: 0 }),
  ],
] as const) {
  test(`an account key rollover interrupted ${when} is resolved by a later renewal`, async (t) => {
    const opened = await engine(t);
    const { vault, ca, world } = opened;
    await issues(vault);
    ca.override('keyChange', override);
    await assert.rejects(rolloverAccount(vault, localCli, '1', forever));
    assert((await findAcmeAccount(vault.db.reader, 1))?.sealed_next_private_key);
    await issuesAnother(vault);
    // What the CA has not heard of may still be on its way, for an hour.
    if (when === 'before the CA heard of it') {
      assert((await findAcmeAccount(vault.db.reader, 1))?.sealed_next_private_key);
      world.advance(hour);
      await issuesAnother(vault);
    }
    const row = await findAcmeAccount(vault.db.reader, 1);
    assert.equal(row?.sealed_next_private_key, null);
    assert.equal(ca.state.accounts.size, 1);
    await rolloverAccount(vault, localCli, '1', forever);
    await issuesAnother(vault);
  });
}

for (const kind of ['newOrder', 'authorization', 'challenge', 'finalize', 'certificate'] as const) {
  test(`an order continues when another process rolls over the account key during ${kind}`, async (t) => {
    const opened = await lookingEngine(t);
    const { vault, ca, zone } = opened;
    const other = await workerOn(vault, zone);
    ca.override(kind, async (_, usual) => {
      await rolloverAccount(other.vault, localCli, '1', forever);
      return usual();
    });
    await issues(vault);
    assert.equal(ca.state.accounts.size, 1);
    assert(ca.state.orders.size <= (kind === 'challenge' ? 2 : 1));
  });
}

test('a renewal whose worker died before an account key rollover succeeds and leaves no DNS record', async (t) => {
  const opened = await lookingEngine(t);
  const { vault, world, zone } = opened;
  const dead = await workerOn(vault, zone, ({ what, moment }) => {
    if (what.startsWith('present') && moment === 'after') dead.die();
  });
  await Promise.race([tryWork(dead.vault), dead.died]);
  assert.equal(zone.records.size, 1);
  await rolloverAccount(vault, localCli, '1', forever);
  world.advance(leaseDuration);
  await issues(vault);
  assert.equal(zone.records.size, 0);
});

test('a renewal during an account key rollover keeps the new key even if the response of the CA is lost', async (t) => {
  const opened = await engine(t);
  const { vault, ca, zone } = opened;
  await issues(vault);
  const other = await workerOn(vault, zone);
  const renewed = Promise.withResolvers<void>();
  ca.override('keyChange', async (_, usual) => {
    await renewed.promise;
    return { ...(await usual()), cutAfter: 0 };
  });
  const changing = rolloverAccount(other.vault, localCli, '1', forever);
  while (countOf(ca, 'keyChange') === 0) await vault.world.turn();
  await issuesAnother(vault);
  renewed.resolve();
  await assert.rejects(changing);
  await issuesAnother(vault);
  assert.equal(ca.state.accounts.size, 1);
  assert.equal((await findAcmeAccount(vault.db.reader, 1))?.sealed_next_private_key, null);
});

test('two concurrent account key rollovers leave one account that can renew', async (t) => {
  const opened = await engine(t);
  const { vault, ca, zone } = opened;
  await issues(vault);
  const other = await workerOn(vault, zone);
  const second = Promise.withResolvers<void>();
  ca.override('keyChange', async (_, usual) => {
    await second.promise;
    return { ...(await usual()), cutAfter: 0 };
  });
  const first = rolloverAccount(other.vault, localCli, '1', forever);
  while (countOf(ca, 'keyChange') === 0) await vault.world.turn();
  await rolloverAccount(vault, localCli, '1', forever);
  second.resolve();
  await first.catch(() => undefined);
  await issuesAnother(vault);
  assert.equal(ca.state.accounts.size, 1);
});

test('an order succeeds when an account key rollover finishes while the order resolves it', async (t) => {
  const opened = await engine(t);
  const { vault, ca, zone } = opened;
  await issues(vault);
  const other = await workerOn(vault, zone);
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  ca.override('keyChange', async (_, usual) => {
    await asked.promise;
    return usual();
  });
  ca.override('newAccount', async (_, usual) => {
    const reply = await usual();
    asked.resolve();
    await answered.promise;
    return reply;
  });
  const changing = rolloverAccount(other.vault, localCli, '1', forever);
  while (countOf(ca, 'keyChange') === 0) await vault.world.turn();
  await requestRenewal(vault, localCli, 'www');
  const working = workOn(vault);
  await changing;
  answered.resolve();
  const ended = await working;
  assert.deepEqual([ended.status, ended.error], ['succeeded', null]);
  await issuesAnother(vault);
});

test('an interrupted account key rollover is completed even if the master key is rotated meanwhile', async (t) => {
  const { vault, ca } = await engine(t);
  await issues(vault);
  ca.override('keyChange', async (_, usual) => ({ ...(await usual()), cutAfter: 0 }));
  await assert.rejects(rolloverAccount(vault, localCli, '1', forever));
  ca.override('newAccount', async (_, usual) => {
    await rotateMasterKey(vault, { actor: localCli, report: () => undefined });
    return usual();
  });
  await rolloverAccount(vault, localCli, '1', forever);
  await issuesAnother(vault);
  assert.equal(ca.state.accounts.size, 1);
  assert.equal((await findAcmeAccount(vault.db.reader, 1))?.sealed_next_private_key, null);
});

test("a rollover that the CA rejects keeps the old key and reports the CA's message", async (t) => {
  const { vault, ca } = await engine(t);
  await issues(vault);
  ca.override('keyChange', problem('malformed', 'not today'));
  await assert.rejects(rolloverAccount(vault, localCli, '1', forever), { message: 'not today' });
  await issuesAnother(vault);
  assert.equal(ca.state.accounts.size, 1);
  assert.equal((await findAcmeAccount(vault.db.reader, 1))?.sealed_next_private_key, null);
});

test('rollover and deactivation of unknown accounts are rejected without an account request to the CA', async (t) => {
  const { vault, ca } = await engine(t);
  for (const id of ['1', '0', '-1', 'x', '1e3', '99999999999999999']) {
    await assert.rejects(rolloverAccount(vault, localCli, id, forever), { code: 'acme_account_not_found' });
    await assert.rejects(closeAccount(vault, localCli, id, forever), { code: 'acme_account_not_found' });
  }
  assert.deepEqual(ca.kinds(), ['directory']);
});
