/** Revocation: by the account, by the certificate's own key, with a renewal at once that does not use the key again. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { publicKeyOf } from '../../../src/crypto/key-pair.ts';
import { closeAccount, rolloverAccount } from '../../../src/domain/acme-accounts/acme-account-changes.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { changeCertificate } from '../../../src/domain/certificates/certificate-update.ts';
import { revokeVersion } from '../../../src/domain/certificates/revocation.ts';
import { parseInput, updateCertificateInput } from '../../../src/domain/inputs.ts';
import { leaseDuration } from '../../../src/domain/renewals/renewal-claim.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireVersion, versionPrivateKey } from '../../../src/domain/versions/versions.ts';
import { problem, type ScriptedReply } from '../../harness/ca/scripted-acme.ts';
import { importOne } from '../../harness/http/fixtures.ts';
import { countOf, type Engine, engine, tryWork } from '../../harness/issuance/engine-vault.ts';
import { workerOn } from '../../harness/issuance/engine-worker.ts';
import { forever, rowOf, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';

async function issued(opened: Engine) {
  assert.equal((await opened.work()).status, 'succeeded');
  return opened;
}

const revoke = (vault: Vault, version?: number, reason: 'keyCompromise' | 'superseded' = 'superseded') =>
  revokeVersion(vault, localCli, 'www', { version, reason }, forever);

async function versionOf(vault: Vault, number?: number) {
  const version = await requireVersion(vault.db.reader, await rowOf(vault, 'www'), number);
  const { serialNumber } = new X509Certificate(version.certificate_pem);
  return { ...version, serialNumber, publicKey: publicKeyOf(versionPrivateKey(vault, version)) };
}

/** Whether the last revocation was signed with the account's URL or with a key of its own. */
function signedBy({ ca }: Engine): 'account' | 'key' {
  const last = ca.requests.filter(({ kind }) => kind === 'revokeCert').at(-1);
  return last?.signed?.header.kid === undefined ? 'key' : 'account';
}

test('a keyCompromise revocation is signed with the compromised key and queues a renewal with a new key', async (t) => {
  const opened = await issued(await engine(t, { certificate: { reuse_key: true } }));
  const { vault, ca, work } = opened;
  const first = await versionOf(vault);
  const { version, renewal } = await revoke(vault, undefined, 'keyCompromise');
  assert.deepEqual([version, typeof renewal], [1, 'number']);
  assert.equal(signedBy(opened), 'key');
  assert.deepEqual([...ca.state.revoked], [[first.serialNumber, 1]]);
  assert.deepEqual(await statusesOf(vault), ['succeeded', 'queued']);
  assert.equal((await work()).status, 'succeeded');
  const second = await versionOf(vault);
  assert.equal(second.version, 2);
  assert.notDeepEqual(second.publicKey, first.publicKey);
  const event = await vault.db.reader
    .selectFrom('audit_events')
    .selectAll()
    .where('action', '=', 'certificate.revoke')
    .executeTakeFirstOrThrow();
  assert.deepEqual(JSON.parse(event.detail), { version: 1, reason: 'keyCompromise' });
});

test('a keyCompromise revocation is retried by the account when the CA rejects the signature of the key', async (t) => {
  const opened = await issued(await engine(t));
  opened.ca.override('revokeCert', problem('unauthorized', 'accounts only'));
  await revoke(opened.vault, undefined, 'keyCompromise');
  assert.equal(signedBy(opened), 'account');
  assert.equal(opened.ca.state.revoked.size, 1);
});

test('a revocation with the reason superseded is signed by the account', async (t) => {
  const opened = await issued(await engine(t));
  await revoke(opened.vault);
  assert.equal(signedBy(opened), 'account');
});

test('a renewal with reuse_key keeps the key', async (t) => {
  const opened = await issued(await engine(t, { certificate: { reuse_key: true } }));
  const { vault, work } = opened;
  await requestRenewal(vault, localCli, 'www');
  await work();
  assert.deepEqual((await versionOf(vault, 2)).publicKey, (await versionOf(vault, 1)).publicKey);
});

test('an interrupted renewal is retried with a new key after its key was revoked', async (t) => {
  const opened = await issued(await engine(t, { certificate: { reuse_key: true } }));
  const { vault, zone, world, work } = opened;
  await requestRenewal(vault, localCli, 'www');
  const dead = await workerOn(vault, zone, ({ what, moment }) => {
    if (what === 'POST /new-order' && moment === 'before') dead.die();
  });
  await Promise.race([tryWork(dead.vault), dead.died]);
  await revoke(vault, undefined, 'keyCompromise');
  world.advance(leaseDuration);
  assert.equal((await work()).status, 'succeeded');
  assert.notDeepEqual((await versionOf(vault, 2)).publicKey, (await versionOf(vault, 1)).publicKey);
});

test('a renewal whose key is revoked during its order succeeds with a new key', async (t) => {
  const opened = await issued(await engine(t, { certificate: { reuse_key: true } }));
  const { vault, ca, work } = opened;
  await requestRenewal(vault, localCli, 'www');
  ca.override('newOrder', async (_, usual) => {
    await revoke(vault, undefined, 'keyCompromise');
    return usual();
  });
  assert.deepEqual(
    [(await work()).error, (await work()).status],
    ['the current version was revoked', 'succeeded'],
  );
  assert.equal((await rowOf(vault, 'www')).failed_attempts, 0);
  assert.notDeepEqual((await versionOf(vault, 2)).publicKey, (await versionOf(vault, 1)).publicKey);
});

test('an older version is revoked without a renewal', async (t) => {
  const opened = await issued(await engine(t));
  const { vault, ca, work } = opened;
  await requestRenewal(vault, localCli, 'www');
  await work();
  assert.deepEqual(await revoke(vault, 1), { version: 1, renewal: undefined });
  assert.equal(ca.state.revoked.size, 1);
  assert.deepEqual(await statusesOf(vault), ['succeeded', 'succeeded']);
});

test('a certificate that is disabled is revoked without a renewal', async (t) => {
  const { vault } = await issued(await engine(t));
  const input = parseInput(updateCertificateInput, { disabled: true });
  await changeCertificate(vault, localCli, 'www', input);
  assert.deepEqual(await revoke(vault), { version: 1, renewal: undefined });
});

test('a version is revoked with its own key when its account is deactivated or unknown at the CA', async (t) => {
  const here = await issued(await engine(t));
  await closeAccount(here.vault, localCli, '1', forever);
  await revoke(here.vault);
  assert.equal(signedBy(here), 'key');
  for (const status of ['gone', 'deactivated'] as const) {
    const there = await issued(await engine(t));
    const { accounts } = there.ca.state;
    if (status === 'gone') accounts.clear();
    else for (const account of accounts.values()) account.status = 'deactivated';
    await revoke(there.vault);
    assert.equal(signedBy(there), 'key');
    assert.equal(there.ca.state.revoked.size, 1);
  }
});

test('a version is revoked by the account after an interrupted account key rollover', async (t) => {
  const opened = await issued(await engine(t));
  const { vault, ca } = opened;
  const cut = async (_: unknown, usual: () => Promise<ScriptedReply>) => ({
    ...(await usual()),
    cutAfter: 0,
  });
  ca.override('keyChange', cut);
  await assert.rejects(rolloverAccount(vault, localCli, '1', forever));
  await revoke(vault);
  assert.equal(signedBy(opened), 'account');
  assert.equal(ca.state.revoked.size, 1);
});

test('a version already revoked at the CA is marked as revoked and queued for renewal', async (t) => {
  const opened = await issued(await engine(t));
  const { vault, ca } = opened;
  ca.override('revokeCert', problem('alreadyRevoked', 'done'));
  const { renewal } = await revoke(vault);
  assert.equal(typeof renewal, 'number');
  assert.equal((await versionOf(vault)).revoked_at, vault.world.now());
});

test("a revocation that the CA rejects reports the CA's message and does not mark the version", async (t) => {
  const opened = await issued(await engine(t));
  const { vault, ca } = opened;
  ca.override('revokeCert', problem('badRevocationReason', 'not that reason'));
  await assert.rejects(revoke(vault), { name: 'AcmeError', message: 'not that reason' });
  assert.equal((await versionOf(vault)).revoked_at, null);
  assert.deepEqual(await statusesOf(vault), ['succeeded']);
});

test('revoking a missing version or an imported certificate is rejected without a request to the CA', async (t) => {
  const opened = await engine(t);
  const { vault, ca } = opened;
  await assert.rejects(revoke(vault), { code: 'no_current_version' });
  await assert.rejects(revoke(vault, 7), { code: 'version_not_found' });
  await importOne(vault, 'imported', { chain: false });
  const imported = { version: undefined, reason: 'superseded' } as const;
  await assert.rejects(revokeVersion(vault, localCli, 'imported', imported, forever), {
    code: 'not_renewable',
  });
  assert.equal(countOf(ca, 'revokeCert'), 0);
});
