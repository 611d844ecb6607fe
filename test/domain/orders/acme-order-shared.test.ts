/**
 * A CA may give two renewals of the same names one order (RFC 8555 §7.4): each ends with a certificate of its own key,
 * and without an alarm.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { test } from 'node:test';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { requireVersion } from '../../../src/domain/versions/versions.ts';
import { runClaimed } from '../../../src/jobs/renewal-worker.ts';
import type { ScriptedReply } from '../../harness/ca/scripted-acme.ts';
import { countOf, engine } from '../../harness/issuance/engine-vault.ts';
import { forever, makeCertificate, rowOf, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';

for (const seen of ['open', 'finalized'] as const) {
  test(`two concurrent renewals that get the same order, ${seen} for the second, both succeed`, async (t) => {
    const { vault, ca } = await engine(t, { certificate: null });
    const domains = ['www.example.test'];
    await makeCertificate(vault, 'ec', { issuer: 'ca', domains, key_type: 'ec256' });
    await makeCertificate(vault, 'rsa', { issuer: 'ca', domains, key_type: 'rsa2048' });
    const asked = Promise.withResolvers<void>();
    const finalized = Promise.withResolvers<void>();
    let shared: ScriptedReply | undefined;
    // The CA gives the order under way again, as Boulder does; that answer is on its way while the first is finalized.
    ca.override(
      'newOrder',
      async (_, usual) => {
        shared = await usual();
        return shared;
      },
      async () => {
        const [order] = ca.state.orders.values();
        assert(order && shared);
        const open = ca.state.orderBody(order) as object;
        asked.resolve();
        await finalized.promise;
        return { ...shared, body: seen === 'open' ? open : (ca.state.orderBody(order) as object) };
      },
    );
    let second: Promise<void> | undefined;
    ca.override('finalize', async (_, usual) => {
      const other = await claimRenewal(vault, 'other');
      assert(other);
      second = runClaimed(vault, other, forever);
      await asked.promise;
      const reply = await usual();
      finalized.resolve();
      return reply;
    });
    const first = await claimRenewal(vault, 'worker');
    assert(first);
    await runClaimed(vault, first, forever);
    await second;
    assert.deepEqual(await statusesOf(vault), ['succeeded', 'succeeded']);
    assert.equal(countOf(ca, 'newOrder'), 3);
    for (const [name, type] of [
      ['ec', 'ec'],
      ['rsa', 'rsa'],
    ] as const) {
      const row = await rowOf(vault, name);
      assert.equal(row.failed_attempts, 0);
      const version = await requireVersion(vault.db.reader, row, undefined);
      assert.equal(new X509Certificate(version.certificate_pem).publicKey.asymmetricKeyType, type);
    }
  });
}

test('a CA that always returns a certificate for another key fails the renewal after four orders', async (t) => {
  const { vault, ca, work } = await engine(t);
  const other = await engine(t);
  assert.equal((await other.work()).status, 'succeeded');
  const { certificate_pem, chain_pem } = await requireVersion(
    other.vault.db.reader,
    await rowOf(other.vault, 'www'),
    undefined,
  );
  const headers = { 'Content-Type': 'application/pem-certificate-chain' };
  ca.overrideAll('certificate', { headers, body: certificate_pem + chain_pem });
  const ended = await work();
  assert.match(ended.error ?? '', /for another key/);
  assert.equal(countOf(ca, 'newOrder'), 4);
  assert.equal((await rowOf(vault, 'www')).failed_attempts, 1);
});
