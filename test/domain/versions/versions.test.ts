/** Versions: numbered, each with its own sealed key, and with entity tags that follow the content and nothing else. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toJson } from '../../../src/base/json.ts';
import { Problem } from '../../../src/base/problem.ts';
import { Secret } from '../../../src/base/secret.ts';
import { SealError } from '../../../src/crypto/secrets/sealing.ts';
import { findVersion } from '../../../src/db/tables/certificates/certificate-versions.ts';
import { findCertificateById, insertCertificate } from '../../../src/db/tables/certificates/certificates.ts';
import { findIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { localCaName } from '../../../src/domain/private-ca/local-ca.ts';
import { neverRenewed, type PlannedCertificate } from '../../../src/domain/schedule/renewal-plan.ts';
import { renewAt } from '../../../src/domain/schedule/renewal-policy.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import {
  addVersion,
  openVersionKey,
  requireVersion,
  type VersionMaterial,
} from '../../../src/domain/versions/versions.ts';
import { makeChain, makeLeaf } from '../../harness/ca/private-chain.ts';
import { testVault } from '../../harness/test-vault.ts';

const { leaf, intermediate } = await makeChain();
const otherLeaf = await makeLeaf(intermediate);

const material: VersionMaterial = {
  source: 'import',
  leaf: leaf.certificate,
  chain: [intermediate.certificate],
  privateKey: leaf.privateKey,
};

const newCertificate = (vault: Vault, name: string) =>
  vault.db.write((writer) =>
    insertCertificate(writer, {
      name,
      domains: toJson([]),
      key_type: 'ec256',
      auto_renew: 0,
      reuse_key: 0,
      created_at: 1,
    }),
  );

type Plan = Pick<PlannedCertificate, 'issuer_id' | 'auto_renew' | 'disabled_at' | 'changed_at'>;

async function add(
  vault: Vault,
  id: number,
  changes: Partial<VersionMaterial> = {},
  plan: Plan = neverRenewed,
) {
  const number = await vault.db.write((writer) =>
    addVersion(vault, writer, { id, ...plan }, { ...material, ...changes }),
  );
  const row = await findVersion(vault.db.reader, id, number);
  assert(row);
  return row;
}

test('versions are numbered from 1, for each certificate on its own', async (t) => {
  const { vault } = await testVault(t);
  const [a, b] = [await newCertificate(vault, 'a'), await newCertificate(vault, 'b')];
  const numbers = [await add(vault, a), await add(vault, a), await add(vault, b), await add(vault, a)];
  assert.deepEqual(
    numbers.map(({ version }) => version),
    [1, 2, 1, 3],
  );
  assert.equal((await findCertificateById(vault.db.reader, a))?.current_version, 3);
});

test('equal content has equal entity tags, different content different ones', async (t) => {
  const { vault } = await testVault(t);
  const [a, b] = [await newCertificate(vault, 'a'), await newCertificate(vault, 'b')];
  const tags = ({
    certificate_etag,
    chain_etag,
    fullchain_etag,
    private_key_etag,
  }: Awaited<ReturnType<typeof add>>) => ({ certificate_etag, chain_etag, fullchain_etag, private_key_etag });
  const first = tags(await add(vault, a));
  assert.deepEqual(tags(await add(vault, b)), first);
  for (const tag of Object.values(first)) assert.match(tag, /^"[A-Za-z0-9_-]{24}"$/);
  assert.equal(new Set(Object.values(first)).size, 4);

  const otherKey = tags(await add(vault, a, { privateKey: otherLeaf.privateKey }));
  assert.deepEqual({ ...otherKey, private_key_etag: first.private_key_etag }, first);
  assert.notEqual(otherKey.private_key_etag, first.private_key_etag);

  const otherCertificate = tags(await add(vault, a, { leaf: otherLeaf.certificate }));
  assert.notEqual(otherCertificate.certificate_etag, first.certificate_etag);
  assert.notEqual(otherCertificate.fullchain_etag, first.fullchain_etag);
  assert.equal(otherCertificate.chain_etag, first.chain_etag);
});

test('the private key entity tag of the same content differs between vaults', async (t) => {
  const [one, two] = [await testVault(t), await testVault(t)];
  const rows = [
    await add(one.vault, await newCertificate(one.vault, 'a')),
    await add(two.vault, await newCertificate(two.vault, 'a')),
  ];
  assert.notEqual(rows[0]?.private_key_etag, rows[1]?.private_key_etag);
});

test('without intermediates the chain is empty and the full chain is the leaf', async (t) => {
  const { vault } = await testVault(t);
  const row = await add(vault, await newCertificate(vault, 'a'), { chain: [] });
  assert.equal(row.chain_pem, '');
  assert.equal(row.fullchain_etag, row.certificate_etag);
  assert.match(row.chain_etag, /^".+"$/);
});

test('a key opens for its own version only', async (t) => {
  const { vault } = await testVault(t);
  const [a, b] = [await newCertificate(vault, 'a'), await newCertificate(vault, 'b')];
  const [one, two, foreign] = [await add(vault, a), await add(vault, a), await add(vault, b)];
  for (const row of [one, two, foreign]) {
    const pem = openVersionKey(vault, row).expose().toString();
    assert.match(pem, /^-----BEGIN PRIVATE KEY-----\n/);
  }
  for (const stolen of [one, foreign]) {
    const moved = { ...two, sealed_private_key: stolen.sealed_private_key };
    assert.throws(() => openVersionKey(vault, moved), SealError);
  }
});

test('the version row contains no private key in plain text', async (t) => {
  const { vault } = await testVault(t);
  const key = Buffer.from('-----BEGIN PRIVATE KEY-----');
  const row = await add(vault, await newCertificate(vault, 'a'));
  assert.equal(row.sealed_private_key.includes(key), false);
  assert.equal(JSON.stringify({ ...row, sealed_private_key: '' }).includes('PRIVATE KEY'), false);
});

test('a new version schedules the next renewal only with an issuer, and clears failures', async (t) => {
  const { vault, world } = await testVault(t);
  const id = await newCertificate(vault, 'a');
  await vault.db.write((writer) =>
    writer.updateTable('certificates').set({ failed_attempts: 3, last_error: 'no' }).execute(),
  );
  const issuer = await findIssuer(vault.db.reader, localCaName);
  assert(issuer);
  const row = await add(vault, id, {}, { ...neverRenewed, issuer_id: issuer.id, auto_renew: 1 });
  const certificate = await findCertificateById(vault.db.reader, id);
  const facts = {
    now: world.now(),
    current: {
      notBefore: row.not_before,
      notAfter: row.not_after,
      madeAt: row.created_at,
      seed: row.serial,
    },
    changed: false,
    ariMoment: null,
    failedAttempts: 0,
    lastAttemptAt: null,
    retryAfter: null,
  };
  assert.equal(certificate?.next_renewal_at, renewAt(facts));
  assert.deepEqual([certificate?.failed_attempts, certificate?.last_error], [0, null]);
  await add(vault, id);
  assert.equal((await findCertificateById(vault.db.reader, id))?.next_renewal_at, null);
});

test('addVersion rejects invalid certificate bytes and stores no version', async (t) => {
  const { vault } = await testVault(t);
  const id = await newCertificate(vault, 'a');
  await assert.rejects(add(vault, id, { leaf: Buffer.from('no'), privateKey: new Secret(Buffer.of(1)) }));
  assert.equal(await findVersion(vault.db.reader, id, 1), undefined);
});

test('requireVersion returns the given or the current version, and rejects missing ones', async (t) => {
  const { vault } = await testVault(t);
  const id = await newCertificate(vault, 'a');
  const require = (current_version: number | null, number?: number) =>
    requireVersion(vault.db.reader, { id, name: 'a', current_version }, number);
  const code = (wanted: string) => (error: unknown) => error instanceof Problem && error.code === wanted;
  await assert.rejects(require(null), code('no_current_version'));
  await add(vault, id);
  await add(vault, id);
  assert.equal((await require(2)).version, 2);
  assert.equal((await require(2, 1)).version, 1);
  await assert.rejects(require(2, 3), code('version_not_found'));
});
