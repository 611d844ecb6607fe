/**
 * CRLs of the private CA, as OpenSSL reads them: new with the first request after a revocation, whichever process
 * serves it.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { day, minute } from '../../../src/base/duration.ts';
import { StorageError } from '../../../src/base/storage-error.ts';
import { encodePem } from '../../../src/crypto/pem.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { purgeCertificate } from '../../../src/domain/certificates/certificate-purging.ts';
import { createCertificate, deleteCertificate } from '../../../src/domain/certificates/certificates.ts';
import { undeleteCertificate } from '../../../src/domain/certificates/deleted-certificates.ts';
import { type RevocationReason, revokeVersion } from '../../../src/domain/certificates/revocation.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import { signCrl } from '../../../src/domain/private-ca/crl-signing.ts';
import { Crls } from '../../../src/domain/private-ca/crls.ts';
import { rootPem } from '../../../src/domain/private-ca/local-ca.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { requireVersion } from '../../../src/domain/versions/versions.ts';
import { openssl } from '../../harness/ca/openssl-chain.ts';
import { forever, rowOf, statusesOf } from '../../harness/issuance/renewal-fixtures.ts';
import { needs } from '../../harness/processes/missing-program.ts';
import { tempDir } from '../../harness/temp-dir.ts';
import { testVault } from '../../harness/test-vault.ts';

const create = (vault: Vault, name: string, lifetime?: string) =>
  createCertificate(
    vault,
    localCli,
    parseInput(createCertificateInput, {
      name,
      domains: [`${name}.example.com`],
      ...(lifetime && { lifetime }),
    }),
  );

const revoke = (vault: Vault, name: string, reason: RevocationReason = 'unspecified') =>
  revokeVersion(vault, localCli, name, { version: undefined, reason }, forever);

const versionOf = async (vault: Vault, name: string) =>
  requireVersion(vault.db.reader, await rowOf(vault, name), undefined);

/** The text of a CRL as OpenSSL prints it, after its signature was verified. */
function printed(t: TestContext, crl: Buffer, issuer: string): string {
  const dir = tempDir(t);
  writeFileSync(join(dir, 'crl'), crl);
  writeFileSync(join(dir, 'issuer'), issuer);
  openssl(dir, 'crl', '-inform', 'DER', '-in', 'crl', '-CAfile', 'issuer', '-noout', '-verify');
  return openssl(dir, 'crl', '-inform', 'DER', '-in', 'crl', '-noout', '-text').toString();
}

/** The serial numbers and reasons on a printed CRL. */
function entriesOf(text: string): Readonly<Record<string, string>> {
  const entries = [...text.matchAll(/Serial Number: ([0-9A-F]+)\n.*\n((?: +CRL entry.*\n.*\n +(.*)\n)?)/g)];
  return Object.fromEntries(entries.map(([, serial, , reason = 'none']) => [serial, reason]));
}

/** What `openssl verify` finds for each certificate of the private CA, with the vault's CRLs of the whole chain. */
async function verified(t: TestContext, vault: Vault, crls: Crls, name: string): Promise<string> {
  const dir = tempDir(t);
  const { certificate_pem, chain_pem } = await versionOf(vault, name);
  writeFileSync(join(dir, 'root'), await rootPem(vault));
  writeFileSync(join(dir, 'chain'), chain_pem);
  writeFileSync(join(dir, 'leaf'), certificate_pem);
  writeFileSync(join(dir, 'crls'), (await crls.all()).body);
  const at = ['-attime', String(Math.floor(vault.world.now() / 1000))];
  const trust = ['-no-CApath', '-no-CAstore', '-CAfile', 'root', '-untrusted', 'chain', '-CRLfile', 'crls'];
  try {
    openssl(dir, 'verify', ...at, '-x509_strict', '-crl_check_all', ...trust, 'leaf');
    return 'OK';
  } catch (error) {
    const { stderr } = error as { readonly stderr: Buffer };
    return /error \d+ at \d+ depth lookup: (.*)/.exec(stderr.toString())?.[1] ?? stderr.toString();
  }
}

test(
  'openssl rejects a revoked certificate with the next CRL, and accepts others',
  needs('openssl'),
  async (t) => {
    const { vault } = await testVault(t);
    const crls = new Crls(vault);
    for (const name of ['one', 'two', 'three']) await create(vault, name);
    assert.equal(await verified(t, vault, crls, 'one'), 'OK');
    const { version, renewal } = await revoke(vault, 'one', 'keyCompromise');
    assert.deepEqual([version, typeof renewal], [1, 'number']);
    assert.deepEqual(await statusesOf(vault), ['queued']);
    await revoke(vault, 'three', 'superseded');
    assert.equal(await verified(t, vault, crls, 'one'), 'certificate revoked');
    assert.equal(await verified(t, vault, crls, 'two'), 'OK');
    const events = await vault.db.reader
      .selectFrom('audit_events')
      .select(['resource', 'detail'])
      .where('action', '=', 'certificate.revoke')
      .execute();
    assert.deepEqual(
      events.map(({ resource, detail }) => [resource, JSON.parse(detail)]),
      [
        ['certificate:one', { version: 1, reason: 'keyCompromise' }],
        ['certificate:three', { version: 1, reason: 'superseded' }],
      ],
    );
  },
);

test(
  'a CRL has serial numbers, reasons, a number that grows, and the key identifier of its issuer',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const crls = new Crls(vault);
    const reasons = {
      unspecified: 'none',
      keyCompromise: 'Key Compromise',
      affiliationChanged: 'Affiliation Changed',
      superseded: 'Superseded',
      cessationOfOperation: 'Cessation Of Operation',
    };
    const expected: Record<string, string> = {};
    const empty = await crls.current();
    for (const [reason, shown] of Object.entries(reasons)) {
      const name = reason.toLowerCase();
      await create(vault, name);
      await revoke(vault, name, reason as RevocationReason);
      expected[(await versionOf(vault, name)).serial] = shown;
    }
    const full = await crls.current();
    assert(full.number > empty.number && full.etag !== empty.etag);
    const { chain_pem } = await versionOf(vault, 'superseded');
    const text = printed(t, full.body, chain_pem);
    assert.deepEqual(entriesOf(text), expected);
    assert.match(text, /Version 2 \(0x1\)\n/);
    assert.match(text, /ecdsa-with-SHA256/);
    assert.match(
      text,
      new RegExp(`X509v3 CRL Number: *\n *(${full.number}|0x${full.number.toString(16)})\n`, 'i'),
    );
    const keyIdentifier = /Subject Key Identifier: *\n *([0-9A-F:]+)/.exec(
      openssl(tempDir(t), 'x509', '-noout', '-text', '-in', writePem(t, chain_pem)).toString(),
    )?.[1];
    assert(keyIdentifier !== undefined && text.includes(keyIdentifier));
    const shown = (field: string) => Date.parse(new RegExp(`${field}: (.*)`).exec(text)?.[1] ?? '');
    assert.equal(shown('Last Update'), world.now() - 5 * minute);
    assert.equal(shown('Next Update'), world.now() + 7 * day);
    assert.doesNotMatch(printed(t, empty.body, chain_pem), /Serial Number/);
  },
);

function writePem(t: TestContext, pem: string): string {
  const path = join(tempDir(t), 'pem');
  writeFileSync(path, pem);
  return path;
}

test('all processes serve the same CRL, and each has the revocations of the others at its next request', async (t) => {
  const { vault, world, dataDir } = await testVault(t);
  const other = await testVault(t, { dataDir, world });
  const [here, there] = [new Crls(vault), new Crls(other.vault)];
  await create(vault, 'one');
  assert.deepEqual(await here.current(), await there.current());
  await revoke(vault, 'one');
  const { serial } = await versionOf(vault, 'one');
  const [first, second] = await Promise.all([there.current(), here.current()]);
  for (const { body } of [first, second, await here.current()]) {
    assert(body.includes(Buffer.from(serial, 'hex')));
  }
  assert.deepEqual(await there.current(), await here.current());
});

test('a revocation while a CRL is being signed is on the CRL of the next request', async (t) => {
  const { vault, world, dataDir } = await testVault(t);
  const other = await testVault(t, { dataDir, world });
  const crls = new Crls(vault);
  for (const name of ['one', 'two']) await create(vault, name);
  await revoke(vault, 'one');
  const write = vault.db.write.bind(vault.db);
  const signed = Promise.withResolvers<void>();
  const stored = Promise.withResolvers<void>();
  t.mock.method(vault.db, 'write', async (work: Parameters<typeof write>[0]) => {
    signed.resolve();
    await stored.promise;
    return write(work);
  });
  const begun = crls.current();
  await signed.promise;
  await revoke(other.vault, 'two');
  const next = crls.current();
  stored.resolve();
  const { serial } = await versionOf(vault, 'two');
  assert(!(await begun).body.includes(Buffer.from(serial, 'hex')));
  assert((await next).body.includes(Buffer.from(serial, 'hex')));
});

test('a CRL is signed again after a day, is not signed before, and is never served expired', async (t) => {
  const { vault, world } = await testVault(t);
  const crls = new Crls(vault);
  const first = await crls.current();
  world.advance(day - 1);
  assert.equal(await crls.current(), first);
  world.advance(1);
  const second = await crls.current();
  assert(second.number > first.number);
  const write = t.mock.method(vault.db, 'write', async () => {
    throw new StorageError('the disk is full');
  });
  world.advance(7 * day - 1);
  assert.equal(await crls.current(), second, 'still valid, and nothing was revoked');
  world.advance(1);
  await assert.rejects(crls.current(), StorageError);
  write.mock.restore();
  assert((await crls.current()).number > second.number);
});

test(
  'a clock that was a year ahead removes no entry from the CRL, and the next CRL has the current date',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const crls = new Crls(vault);
    await create(vault, 'one');
    await create(vault, 'two');
    await revoke(vault, 'one');
    const right = await crls.current();
    world.advance(400 * day);
    const future = await crls.current();
    world.advance(-400 * day);
    const now = await crls.current();
    await revoke(vault, 'two');
    const last = await crls.current();
    assert(right.number < future.number && future.number < now.number && now.number < last.number);
    const issuer = (await versionOf(vault, 'one')).chain_pem;
    const serials = await Promise.all(
      ['one', 'two'].map(async (name) => (await versionOf(vault, name)).serial),
    );
    assert.deepEqual(Object.keys(entriesOf(printed(t, now.body, issuer))), [serials[0]?.toUpperCase()]);
    const text = printed(t, last.body, issuer);
    assert.deepEqual(
      Object.keys(entriesOf(text)).toSorted(),
      serials.map((serial) => serial.toUpperCase()).toSorted(),
    );
    const [, updated = ''] = /Last Update: (.*)/.exec(text) ?? [];
    assert(Date.parse(updated) <= world.now(), updated);
  },
);

test('a CRL without the newest revocation is not served, even if the new one cannot be stored', async (t) => {
  const { vault } = await testVault(t);
  const crls = new Crls(vault);
  await create(vault, 'one');
  await crls.current();
  await revoke(vault, 'one');
  t.mock.method(vault.db, 'write', async () => {
    throw new StorageError('the disk is full');
  });
  await assert.rejects(crls.current(), StorageError);
});

test('a deleted, purged or restored certificate stays on the CRL until a CRL after its expiry', async (t) => {
  const { vault, world } = await testVault(t);
  const crls = new Crls(vault);
  const isListed = async (serial: string) => (await crls.current()).body.includes(Buffer.from(serial, 'hex'));
  const serials: string[] = [];
  for (const name of ['purged', 'restored']) {
    await create(vault, name, '10d');
    await revoke(vault, name);
    serials.push((await versionOf(vault, name)).serial);
    await deleteCertificate(vault, localCli, name, { force: false });
  }
  await purgeCertificate(vault, localCli, { name: 'purged' });
  await undeleteCertificate(vault, localCli, { name: 'restored' });
  assert.notEqual((await versionOf(vault, 'restored')).revoked_at, null);
  for (const serial of serials) assert(await isListed(serial));
  world.advance(9.5 * day);
  for (const serial of serials) assert(await isListed(serial));
  world.advance(2 * day);
  for (const serial of serials) assert(await isListed(serial), 'on one CRL after it expired');
  world.advance(day);
  for (const serial of serials) assert(!(await isListed(serial)));
  world.advance(day);
  await crls.current();
  const { count } = await vault.db.reader
    .selectFrom('revoked_certificates')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  assert.equal(Number(count), 0);
});

test('a CRL of 1235 entries yields to the event loop three times and has every entry', async (t) => {
  const { vault, world } = await testVault(t);
  await create(vault, 'one');
  await revoke(vault, 'one');
  const serials = Array.from({ length: 1234 }, (_, n) => `40${n.toString(16).padStart(30, '0')}`);
  const { ca_certificate_id } = await vault.db.reader
    .selectFrom('revoked_certificates')
    .select('ca_certificate_id')
    .executeTakeFirstOrThrow();
  const row = { ca_certificate_id, reason: 1, revoked_at: world.now(), not_after: world.now() + day };
  await vault.db.write((writer) =>
    writer
      .insertInto('revoked_certificates')
      .values(serials.map((serial) => ({ ...row, serial })))
      .execute(),
  );
  const turns = t.mock.method(vault.world, 'turn');
  const { body } = await new Crls(vault).current();
  assert.equal(turns.mock.callCount(), 3);
  for (const serial of serials) assert(body.includes(Buffer.from(serial, 'hex')), serial);
});

test('the CRL number grows although the stored CRLs were deleted', async (t) => {
  const { vault, world } = await testVault(t);
  const before = await new Crls(vault).current();
  await vault.db.write((writer) => writer.deleteFrom('crls').execute());
  world.advance(minute);
  assert((await new Crls(vault).current()).number > before.number);
});

test('a version is revoked once, and not after it expired', async (t) => {
  const { vault, world } = await testVault(t);
  for (const name of ['one', 'two']) await create(vault, name, '1d');
  await revoke(vault, 'one');
  await assert.rejects(revoke(vault, 'one'), /version 1 of one was already revoked at/);
  world.advance(day);
  await assert.rejects(revoke(vault, 'two'), /version 1 of two expired at .*; there is nothing to revoke/);
});

test(
  'after a new intermediate, certificates of the old one are revoked on the CRL of the old one',
  needs('openssl'),
  async (t) => {
    const { vault, world } = await testVault(t);
    const crls = new Crls(vault);
    await create(vault, 'old', '2000d');
    const old = await versionOf(vault, 'old');
    world.advance((5 * 365 + 180 - 80) * day);
    await create(vault, 'new', '400d');
    const fresh = await versionOf(vault, 'new');
    assert.notEqual(fresh.chain_pem, old.chain_pem);
    await revoke(vault, 'old');
    assert.equal(await verified(t, vault, crls, 'old'), 'certificate revoked');
    assert.equal(await verified(t, vault, crls, 'new'), 'OK');
    assert.doesNotMatch(printed(t, (await crls.current()).body, fresh.chain_pem), /Serial Number/);
    const pem = (await crls.all()).body.toString();
    assert.equal(pem.split('-----BEGIN X509 CRL-----').length - 1, 3, 'of the root and both intermediates');
    assert(pem.endsWith(encodePem('X509 CRL', (await crls.current()).body)));
  },
);

test('a process that found no CRL does not replace the one that another has signed meanwhile', async (t) => {
  const { vault } = await testVault(t);
  await create(vault, 'www');
  const { number } = await new Crls(vault).current();
  const { ca_certificate_id: id } = await vault.db.reader
    .selectFrom('crls')
    .select('ca_certificate_id')
    .where('number', '=', number)
    .executeTakeFirstOrThrow();
  await signCrl(vault, id, 0);
  assert.equal((await new Crls(vault).current()).number, number);
  await signCrl(vault, id, number);
  assert.notEqual((await new Crls(vault).current()).number, number);
});
