/**
 * When ACME clients are to renew: before the expiry, at once after a revocation, and soon after a rotation of the CA.
 */
import assert from 'node:assert/strict';
import { suite, type TestContext, test } from 'node:test';
import { renewalInfoId } from '../../../../src/acme/renewal-info.ts';
import { day, hour, minute } from '../../../../src/base/duration.ts';
import { updateCertificate } from '../../../../src/db/tables/certificates/certificates.ts';
import { adviseRenewal } from '../../../../src/domain/acme-server/certificates/renewal-info.ts';
import { AcmeProblem } from '../../../../src/domain/acme-server/protocol/acme-problem.ts';
import { localCli } from '../../../../src/domain/audit/audit.ts';
import { revokeVersion } from '../../../../src/domain/certificates/revocation.ts';
import { rotateCa } from '../../../../src/domain/renewals/ca-rotation.ts';
import { issueOwned, type OwnedOptions } from '../../../harness/acme/owned-certificate.ts';
import { testVault } from '../../../harness/test-vault.ts';

async function prepared(t: TestContext, options: OwnedOptions = {}) {
  const { vault, world } = await testVault(t);
  const owned = await issueOwned(vault, ['www.example.com'], options);
  const id = renewalInfoId(owned.leaf);
  assert(id);
  const advise = (text = id, issuer = owned.issuer) => adviseRenewal(vault, issuer, text);
  const refusal = async (text: string) => {
    const error = await advise(text).catch((thrown: unknown) => thrown);
    assert(error instanceof AcmeProblem, String(error));
    return [error.type, error.status];
  };
  return { vault, world, owned, id, advise, refusal };
}

test('the renewal window of a 90-day certificate ends when a third of its lifetime is left and lasts 2% of it', async (t) => {
  const { world, advise } = await prepared(t, { lifetime: 90 * day });
  const { window, retryAfterMs } = await advise();
  const begin = world.now() - 5 * minute;
  const near = (at: number, expected: number) => assert(Math.abs(at - expected) < hour, `${at - begin}`);
  near(window.end, begin + 60 * day);
  near(window.end - window.start, 1.8 * day);
  assert.equal(retryAfterMs, 6 * hour);
});

test('the renewal window of a 60-minute certificate ends near half its lifetime, with a shorter Retry-After', async (t) => {
  const { world, advise } = await prepared(t, { lifetime: 60 * minute });
  const { window, retryAfterMs } = await advise();
  assert(window.end <= world.now() + 31 * minute && window.end >= world.now() + 25 * minute);
  assert(window.start < window.end);
  assert(retryAfterMs >= minute && retryAfterMs < 2 * minute, `${retryAfterMs}`);
});

test('the renewal window of a revoked certificate is in the past', async (t) => {
  const { vault, world, owned, advise } = await prepared(t);
  const { signal } = new AbortController();
  await revokeVersion(vault, localCli, owned.name, { version: 1, reason: 'keyCompromise' }, signal);
  const { window } = await advise();
  assert(window.start < window.end && window.end < world.now(), JSON.stringify(window));
});

test('CA rotation sets the renewal window of earlier certificates to the next day and queues no renewal', async (t) => {
  const { vault, world, owned, advise } = await prepared(t);
  world.advance(10 * day);
  await rotateCa(vault, localCli, owned.issuer);
  const { window } = await advise();
  assert.deepEqual([window.start, window.end], [world.now(), world.now() + day]);
  const queued = await vault.db.reader.selectFrom('renewals').select('id').execute();
  assert.deepEqual(queued, []);
  const renewed = await issueOwned(vault, ['www.example.com']);
  assert.deepEqual([renewed.certificateId, renewed.version], [owned.certificateId, 2]);
  const later = await advise(renewalInfoId(renewed.leaf));
  assert(later.window.start > world.now() + day);
});

test('the renewal window of the upstream CA is passed on for the current version only', async (t) => {
  const { vault, world, owned, advise } = await prepared(t);
  const [start, end] = [world.now() + 3 * day, world.now() + 4 * day];
  await vault.db.write(async (writer) => {
    await writer.updateTable('certificate_versions').set({ source: 'acme' }).execute();
    await updateCertificate(writer, owned.certificateId, { ari_window_start: start, ari_window_end: end });
  });
  assert.deepEqual((await advise()).window, { start, end });
  await issueOwned(vault, ['www.example.com']);
  assert.notDeepEqual((await advise()).window, { start, end });
});

suite('a renewal information identifier', () => {
  test('is rejected as malformed with status 400 if it cannot be parsed', async (t) => {
    const { refusal } = await prepared(t);
    assert.deepEqual(await refusal('x'), ['malformed', 400]);
  });

  test('is rejected with status 404 for an unknown serial number, another key identifier or another issuer', async (t) => {
    const { refusal, advise, owned, id } = await prepared(t);
    const [authorityKeyId = '', serial = ''] = id.split('.');
    assert.deepEqual(await refusal(`${authorityKeyId}.AQ`), ['malformed', 404]);
    assert.deepEqual(await refusal(`AQ.${serial}`), ['malformed', 404]);
    const other = advise(id, { ...owned.issuer, id: owned.issuer.id + 1 });
    await assert.rejects(other, (error) => error instanceof AcmeProblem && error.status === 404);
  });
});
