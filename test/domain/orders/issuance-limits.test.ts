/**
 * Limits of CAs: what was refused is heeded by every certificate that it concerns and by no other, and what a CA
 * publishes is kept before it refuses.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { day, hour, minute, second } from '../../../src/base/duration.ts';
import { toJson } from '../../../src/base/json.ts';
import { generatePrivateKey } from '../../../src/crypto/key-pair.ts';
import { findCertificateById } from '../../../src/db/tables/certificates/certificates.ts';
import { storeHold } from '../../../src/db/tables/issuance/issuance-holds.ts';
import { insertAcmeIssuer, insertIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { findOpenRenewal, updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { registeredDomains } from '../../../src/domain/dns-providers/registered-domain.ts';
import { publishedLimits } from '../../../src/domain/orders/issuance-limits.ts';
import { issueFromLocalCa } from '../../../src/domain/private-ca/local-ca.ts';
import type { ClaimedRenewal } from '../../../src/domain/renewals/attempt.ts';
import { claimRenewal } from '../../../src/domain/renewals/renewal-claim.ts';
import { fail } from '../../../src/domain/renewals/renewal-outcome.ts';
import { requestRenewal } from '../../../src/domain/renewals/renewals.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { addVersion } from '../../../src/domain/versions/versions.ts';
import { identifier } from '../../harness/ca/private-chain.ts';
import { problem } from '../../harness/ca/scripted-acme.ts';
import { engine, workOn } from '../../harness/issuance/engine-vault.ts';
import {
  change,
  endAll,
  makeCertificate,
  rowOf,
  statusesOf,
} from '../../harness/issuance/renewal-fixtures.ts';
import { testVault } from '../../harness/test-vault.ts';

const directory = 'https://acme-v02.api.letsencrypt.org/directory';
const limits = publishedLimits(directory);

/** A vault with the issuer `ca` at Let's Encrypt, which nobody asks. */
async function prepared(t: TestContext) {
  const opened = await testVault(t);
  const { vault, world } = opened;
  const issuer = await vault.db.write(async (writer) => {
    const id = await insertIssuer(writer, { name: 'ca', type: 'acme', created_at: world.now() });
    await insertAcmeIssuer(writer, { issuer_id: id, directory_url: directory });
    return id;
  });
  /** A certificate with a version that Let's Encrypt issued now, and its renewal, which has ended so. */
  const issued = async (name: string, domains: readonly string[]) => {
    await makeCertificate(vault, name, { issuer: 'ca', domains });
    await succeeded(vault, name);
  };
  return { ...opened, issuer, issued };
}

/** Ends the open renewal of the certificate as its success does. */
async function succeeded(vault: Vault, name: string): Promise<void> {
  const row = await rowOf(vault, name);
  const privateKey = await generatePrivateKey('ec256');
  const identifiers = (JSON.parse(row.domains) as string[]).map(identifier);
  const material = await issueFromLocalCa(vault, { identifiers, privateKey, lifetime: 90 * day });
  await vault.db.write(async (writer) => {
    await addVersion(vault, writer, row, { source: 'acme', ...material, privateKey });
    await writer
      .updateTable('certificate_versions')
      .set({ directory_url: directory })
      .where('certificate_id', '=', row.id)
      .execute();
    const open = await findOpenRenewal(writer, row.id);
    assert(open);
    await updateRenewal(writer, open.id, { status: 'succeeded', finished_at: vault.world.now() });
  });
}

/** Ends the renewal as a failed validation does. */
async function failedToValidate(vault: Vault, { renewal, owner }: ClaimedRenewal): Promise<void> {
  await vault.db.write(async (writer) => {
    const certificate = await findCertificateById(writer, renewal.certificate_id);
    assert(certificate);
    const order = { order_url: `https://ca.test/${renewal.id}`, order_domains: certificate.domains };
    await updateRenewal(writer, renewal.id, order);
    await fail(vault, writer, { renewal, owner, certificate }, { reason: 'no such record' });
  });
}

const claimed = async (vault: Vault) => (await claimRenewal(vault, 'worker'))?.renewal.certificate_id;

async function holdOf(vault: Vault, name: string) {
  const open = await findOpenRenewal(vault.db.reader, (await rowOf(vault, name)).id);
  return open && ([open.held_until, open.hold_reason] as const);
}

test('a sixth certificate for a set of names within 7 days is held, in any order of the names', async (t) => {
  const { vault, world, issued } = await prepared(t);
  const start = world.now();
  await issued('a', ['www.example.com', 'example.com']);
  for (let n = 1; n < 5; n += 1) {
    world.advance(hour);
    await requestRenewal(vault, localCli, 'a');
    assert.equal(await claimed(vault), (await rowOf(vault, 'a')).id);
    await succeeded(vault, 'a');
  }
  await makeCertificate(vault, 'twin', { issuer: 'ca', domains: ['example.com', 'www.example.com'] });
  await requestRenewal(vault, localCli, 'a');
  assert.equal(await claimed(vault), undefined);
  for (const name of ['a', 'twin']) {
    assert.deepEqual(await holdOf(vault, name), [
      start + 7 * day,
      'the CA allows 5 certificates per set of names within 7 days',
    ]);
  }
  // Another set is not held back by it, and the first goes on as soon as the week is over.
  await makeCertificate(vault, 'other', { issuer: 'ca', domains: ['example.com'] });
  assert.equal(await claimed(vault), (await rowOf(vault, 'other')).id);
  world.advance(start + 7 * day - world.now() - 1);
  await vault.db.write((writer) => writer.updateTable('renewals').set({ lease_expires_at: null }).execute());
  assert.equal(await claimed(vault), undefined);
  world.advance(1);
  assert(await claimed(vault));
  // One of the twins is under way and counts already.
  assert.equal(await claimed(vault), undefined);
});

test('renewals stored without name_set by the previous version count toward the limit per set of names', async (t) => {
  const { vault, world, issued } = await prepared(t);
  const start = world.now();
  await issued('a', ['www.example.com', 'example.com']);
  for (let n = 1; n < 5; n += 1) {
    await requestRenewal(vault, localCli, 'a');
    await succeeded(vault, 'a');
  }
  // It did not store the digest of the names.
  await vault.db.write((writer) =>
    writer
      .updateTable('renewals')
      .set({ name_set: null, order_domains: toJson(['www.example.com', 'example.com'].map(identifier)) })
      .execute(),
  );
  world.advance(hour);
  await makeCertificate(vault, 'twin', { issuer: 'ca', domains: ['example.com', 'www.example.com'] });
  assert.equal(await claimed(vault), undefined);
  const reason = 'the CA allows 5 certificates per set of names within 7 days';
  assert.deepEqual(await holdOf(vault, 'twin'), [start + 7 * day, reason]);
  world.advance(start + 7 * day - world.now());
  assert.equal(await claimed(vault), (await rowOf(vault, 'twin')).id);
});

test('the 51st new certificate of a registered domain within 7 days is held, renewals are not', async (t) => {
  const { vault, world, issued } = await prepared(t);
  for (let n = 1; n <= 50; n += 1) await issued(`c${n}`, [`w${n}.example.co.uk`]);
  await makeCertificate(vault, 'next', { issuer: 'ca', domains: ['x.y.example.co.uk', 'elsewhere.test'] });
  await makeCertificate(vault, 'unrelated', { issuer: 'ca', domains: ['notexample.co.uk'] });
  assert.equal(await claimed(vault), (await rowOf(vault, 'unrelated')).id);
  assert.equal(await claimed(vault), undefined);
  assert.deepEqual(await holdOf(vault, 'next'), [
    world.now() + 7 * day,
    'the CA allows 50 certificates per registered domain (example.co.uk) within 7 days',
  ]);
  await requestRenewal(vault, localCli, 'c1');
  assert.equal(await claimed(vault), (await rowOf(vault, 'c1')).id);
});

test('renewals use up nothing of the 50 new certificates of a registered domain within 7 days', async (t) => {
  const { vault, world, issued } = await prepared(t);
  await issued('a', ['a.example.com']);
  for (let n = 2; n <= 50; n += 1) await issued(`c${n}`, [`w${n}.example.com`]);
  world.advance(7 * day);
  for (let n = 2; n <= 50; n += 1) {
    await requestRenewal(vault, localCli, `c${n}`);
    await succeeded(vault, `c${n}`);
  }
  for (let n = 1; n <= 49; n += 1) await issued(`n${n}`, [`n${n}.example.com`]);
  await makeCertificate(vault, 'last', { issuer: 'ca', domains: ['last.example.com'] });
  assert.equal(await claimed(vault), (await rowOf(vault, 'last')).id);
  await succeeded(vault, 'last');
  await makeCertificate(vault, 'more', { issuer: 'ca', domains: ['more.example.com'] });
  assert.equal(await claimed(vault), undefined);
  assert.deepEqual(await holdOf(vault, 'more'), [
    world.now() + 7 * day,
    'the CA allows 50 certificates per registered domain (example.com) within 7 days',
  ]);
});

test('an order that replaces a certificate of its CA (RFC 9773) is held only by failed validations', async (t) => {
  const { vault, world, issued } = await prepared(t);
  await issued('a', ['www.example.com']);
  for (let n = 1; n < 5; n += 1) {
    await requestRenewal(vault, localCli, 'a');
    await succeeded(vault, 'a');
  }
  await requestRenewal(vault, localCli, 'a');
  await change(vault, 'a', { ari_window_start: world.now(), ari_window_end: world.now() + day });
  const told = { directory_url: directory, scope: 'domain', subject: 'example.com' } as const;
  const hold = { ...told, until: world.now() + day, reason: 'too many' };
  await vault.db.write((writer) => storeHold(writer, hold, world.now()));
  const first = world.now();
  for (let n = 1; n <= 5; n += 1) {
    const renewal = await claimRenewal(vault, 'worker');
    assert(renewal, `attempt ${n}`);
    await failedToValidate(vault, renewal);
    await requestRenewal(vault, localCli, 'a');
  }
  assert.equal(await claimed(vault), undefined);
  const reason = 'the CA allows 5 failed validations per name within an hour';
  assert.deepEqual(await holdOf(vault, 'a'), [first + hour, reason]);
});

test('orders are held at 300 per account within 3 hours, and continue as the window moves', async (t) => {
  const { vault, world, issuer } = await prepared(t);
  const most = limits?.ordersPerAccount.count ?? 0;
  const account = await vault.db.write(async (writer) => {
    const { id } = await writer
      .insertInto('acme_accounts')
      .values({
        ...{ issuer: 'ca', directory_url: directory, status: 'valid', created_at: 0 },
        sealed_private_key: Buffer.of(1),
      })
      .returning('id')
      .executeTakeFirstOrThrow();
    await writer.updateTable('acme_issuers').set({ account_id: id }).execute();
    return id;
  });
  await makeCertificate(vault, 'a', { issuer: 'ca', domains: ['a.example'] });
  await endAll(vault);
  const { id } = await rowOf(vault, 'a');
  await vault.db.write(async (writer) => {
    for (let n = 1; n <= most; n += 1) {
      await writer
        .insertInto('renewals')
        .values({
          ...{ certificate_id: id, status: 'succeeded', requested_by: 'system', requested_at: 0 },
          ...{ issuer_id: issuer, acme_account_id: account, finished_at: world.now() - hour + n * second },
        })
        .execute();
    }
  });
  await makeCertificate(vault, 'b', { issuer: 'ca', domains: ['b.example'] });
  assert.equal(await claimed(vault), undefined);
  const until = world.now() + 2 * hour + second;
  assert.deepEqual(await holdOf(vault, 'b'), [until, 'the CA allows 300 orders per account within 3 hours']);
  world.advance(until - world.now());
  assert.equal(await claimed(vault), (await rowOf(vault, 'b')).id);
});

test('after five failed validations within an hour a certificate is held despite renewal requests', async (t) => {
  const { vault, world } = await prepared(t);
  await makeCertificate(vault, 'a', { issuer: 'ca', domains: ['a.example'] });
  const first = world.now();
  for (let n = 1; n <= 5; n += 1) {
    const renewal = await claimRenewal(vault, 'worker');
    assert(renewal, `attempt ${n}`);
    await failedToValidate(vault, renewal);
    world.advance(minute);
    await requestRenewal(vault, localCli, 'a');
  }
  assert.equal(await claimed(vault), undefined);
  assert.equal((await holdOf(vault, 'a'))?.[0], first + hour);
  world.advance(first + hour - world.now());
  assert(await claimed(vault));
});

test('failed validations of a name count for every certificate with it, and for no other', async (t) => {
  const { vault, world } = await prepared(t);
  const first = world.now();
  const domains = { ec: ['a.example', 'b.example'], rsa: ['b.example'], other: ['c.example'] };
  for (const [name, names] of Object.entries(domains)) {
    await makeCertificate(vault, name, { issuer: 'ca', domains: names });
  }
  for (let n = 1; n <= 5; n += 1) {
    const name = n % 2 === 1 ? 'ec' : 'rsa';
    await requestRenewal(vault, localCli, name);
    const open = await findOpenRenewal(vault.db.reader, (await rowOf(vault, name)).id);
    const renewal = open && (await claimRenewal(vault, 'worker', { only: open.id }));
    assert(renewal, `attempt ${n}`);
    await failedToValidate(vault, renewal);
    world.advance(minute);
  }
  await requestRenewal(vault, localCli, 'ec');
  await requestRenewal(vault, localCli, 'rsa');
  assert.equal(await claimed(vault), (await rowOf(vault, 'other')).id);
  assert.equal(await claimed(vault), undefined);
  const reason = 'the CA allows 5 failed validations per name within an hour';
  assert.deepEqual(await holdOf(vault, 'ec'), [first + hour, reason]);
  assert.deepEqual(await holdOf(vault, 'rsa'), [first + hour, reason]);
});

test('a name whose validation failed four times is held while another order for it is under way', async (t) => {
  const { vault, world } = await prepared(t);
  for (const name of ['one', 'two'])
    await makeCertificate(vault, name, { issuer: 'ca', domains: ['a.example'] });
  const first = world.now();
  for (let n = 1; n <= 4; n += 1) {
    const renewal = await claimRenewal(vault, 'worker');
    assert(renewal, `attempt ${n}`);
    await failedToValidate(vault, renewal);
    world.advance(minute);
    for (const name of ['one', 'two']) await requestRenewal(vault, localCli, name);
  }
  const underWay = await claimRenewal(vault, 'worker');
  assert(underWay);
  assert.equal(await claimed(vault), undefined);
  const waiting = underWay.renewal.certificate_id === (await rowOf(vault, 'one')).id ? 'two' : 'one';
  assert.equal((await holdOf(vault, waiting))?.[0], first + hour);
});

const tooMany = (detail: string) => problem('rateLimited', detail, { headers: { 'Retry-After': '7200' } });

test('a limit on a registered domain delays only its own certificates', async (t) => {
  const { vault, ca, world } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'a', { issuer: 'ca', domains: ['a.example.com'] });
  ca.override(
    'newOrder',
    tooMany('too many certificates (50) already issued for "example.com" in the last 168h0m0s'),
  );
  assert.equal((await workOn(vault)).status, 'failed');
  await makeCertificate(vault, 'b', { issuer: 'ca', domains: ['b.example.com'] });
  await makeCertificate(vault, 'c', { issuer: 'ca', domains: ['example.net'] });
  assert.equal((await workOn(vault)).certificate_id, (await rowOf(vault, 'c')).id);
  assert.equal(await claimed(vault), undefined);
  const [until] = (await holdOf(vault, 'b')) ?? [];
  assert(
    until !== undefined && until !== null && until > world.now() + hour && until <= world.now() + 2 * hour,
  );
  world.advance(2 * hour);
  assert.equal((await workOn(vault)).status, 'succeeded');
});

test('a rateLimited error about an unrelated domain does not delay certificates of that domain', async (t) => {
  const { vault, ca } = await engine(t, { certificate: null });
  await makeCertificate(vault, 'a', { issuer: 'ca', domains: ['a.example.com'] });
  ca.override(
    'newOrder',
    tooMany('too many certificates (50) already issued for "example.net" in the last 168h0m0s'),
  );
  assert.equal((await workOn(vault)).status, 'failed');
  await makeCertificate(vault, 'b', { issuer: 'ca', domains: ['b.example.net'] });
  assert.equal((await workOn(vault)).status, 'succeeded');
});

test('the issuer is paused when orders of three unrelated domains in a row are rate-limited, until one succeeds', async (t) => {
  const { vault, ca, world } = await engine(t, { certificate: null });
  const limited = ca.overrideAll('newOrder', tooMany('slow down'));
  const pause = async () =>
    (await vault.db.reader.selectFrom('acme_issuers').select('paused_until').executeTakeFirstOrThrow())
      .paused_until;
  // Of one domain there may be many: they say nothing about others.
  for (const name of ['a', 'b', 'c', 'd']) {
    await makeCertificate(vault, name, { issuer: 'ca', domains: [`${name}.example.com`] });
    assert.equal((await workOn(vault)).status, 'failed');
    assert.equal(await pause(), null);
  }
  for (const [name, paused] of [
    ['e', null],
    ['f', 5 * minute],
    ['g', 10 * minute],
  ] as const) {
    await makeCertificate(vault, name, { issuer: 'ca', domains: [`${name}.test`] });
    assert.equal((await workOn(vault)).status, 'failed');
    assert.equal(await pause(), paused && world.now() + paused);
    world.advance(paused ?? 0);
  }
  limited();
  await makeCertificate(vault, 'h', { issuer: 'ca', domains: ['h.test'] });
  assert.equal((await workOn(vault)).status, 'succeeded');
  ca.override('newOrder', tooMany('slow down'));
  await makeCertificate(vault, 'i', { issuer: 'ca', domains: ['i.test'] });
  await workOn(vault);
  assert(((await pause()) ?? 0) <= world.now());
  assert.equal((await statusesOf(vault)).at(-1), 'failed');
});

test('repeated rate-limited renewals of the same certificates do not extend the pause of the issuer', async (t) => {
  const { vault, ca, world } = await engine(t, { certificate: null });
  ca.overrideAll('newOrder', tooMany('slow down'));
  const pause = async () =>
    (await vault.db.reader.selectFrom('acme_issuers').select('paused_until').executeTakeFirstOrThrow())
      .paused_until;
  const names = ['a', 'b', 'c'];
  for (const name of names) {
    await makeCertificate(vault, name, { issuer: 'ca', domains: [`${name}.test`] });
    assert.equal((await workOn(vault)).status, 'failed');
  }
  const paused = world.now() + 5 * minute;
  assert.equal(await pause(), paused);
  world.advance(2 * hour);
  for (const name of names) {
    await requestRenewal(vault, localCli, name);
    assert.equal((await workOn(vault)).status, 'failed');
  }
  assert.equal(await pause(), paused);
});

test('registered domains are found by the list of public suffixes', async () => {
  const names = ['*.a.example.co.uk', 'b.example.co.uk', 'x.github.io', '192.0.2.1', 'com', 'host.corp'];
  assert.deepEqual(await registeredDomains(names), ['example.co.uk', 'x.github.io', 'host.corp']);
});
