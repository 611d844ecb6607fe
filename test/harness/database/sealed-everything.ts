/** A vault with a sealed secret in every possible place, opened with the product's own code. */
import assert from 'node:assert/strict';
import { toJson } from '../../../src/base/json.ts';
import { Secret } from '../../../src/base/secret.ts';
import { insertNextKey } from '../../../src/db/tables/certificates/next-keys.ts';
import {
  findAcmeAccount,
  insertAcmeAccount,
  updateAcmeAccount,
} from '../../../src/db/tables/issuance/acme-accounts.ts';
import { insertAcmeIssuer, insertIssuer } from '../../../src/db/tables/issuance/issuers.ts';
import { insertRenewal, updateRenewal } from '../../../src/db/tables/renewals/renewals.ts';
import { sealedPlaceNames, sealedPlaces } from '../../../src/db/tables/sealed-blobs.ts';
import { localCli } from '../../../src/domain/audit/audit.ts';
import { replaceCheckpointKey } from '../../../src/domain/audit/audit-checkpoint.ts';
import { createCertificate } from '../../../src/domain/certificates/certificates.ts';
import { addDnsProvider } from '../../../src/domain/dns-providers/dns-providers.ts';
import { createCertificateInput, parseInput } from '../../../src/domain/inputs.ts';
import {
  accountKeyOwner,
  acmeClientKeyOwner,
  auditKeyOwner,
  authenticatorSecretOwner,
  authorityKeyOwner,
  channelSettingsOwner,
  deletedKeyOwner,
  dnsSecretOwner,
  externalAccountKeyOwner,
  nextAccountKeyOwner,
  nextKeyOwner,
  openFor,
  renewalKeyOwner,
  requestedAuthorityKeyOwner,
  sealFor,
  targetSettingsOwner,
  versionKeyOwner,
} from '../../../src/domain/sealed-secrets.ts';
import type { Vault } from '../../../src/domain/vault.ts';
import { addWebhook } from '../notifications/fixtures.ts';
import { addWebhookTarget } from '../targets/deployed.ts';

const text = (words: string) => new Secret(Buffer.from(words));

/**
 * Adds a certificate of the private CA, an ACME issuer with an account that changes its key, a renewal, a DNS provider.
 */
export async function sealEverything(vault: Vault): Promise<void> {
  const { db, world } = vault;
  const input = parseInput(createCertificateInput, { name: 'web', domains: ['a.test'] });
  await createCertificate(vault, localCli, input);
  const secret = text('api_token: token-of-the-provider');
  await addDnsProvider(
    vault,
    localCli,
    { name: 'dns', type: 'cloudflare', zones: ['a.test'] as never },
    secret,
  );
  await addWebhook(vault, 'https://hooks.a.test/');
  await addWebhookTarget(vault, 'https://hooks.a.test/');
  await replaceCheckpointKey(vault, localCli);
  await db.write(async (writer) => {
    const now = world.now();
    const common = { directory_url: 'https://ca.test/directory', email: null };
    const account = await insertAcmeAccount(writer, {
      ...common,
      issuer: 'ca',
      account_url: 'https://ca.test/account/1',
      status: 'valid',
      sealed_private_key: Buffer.alloc(0),
      created_at: now,
    });
    await updateAcmeAccount(writer, account, {
      sealed_private_key: await sealFor(vault, writer, accountKeyOwner(account), text('account key')),
      sealed_next_private_key: await sealFor(vault, writer, nextAccountKeyOwner(account), text('next key')),
    });
    const issuer = await insertIssuer(writer, { name: 'ca', type: 'acme', created_at: now });
    await insertAcmeIssuer(writer, {
      ...common,
      issuer_id: issuer,
      account_id: account,
      eab_kid: 'kid',
      sealed_eab_key: await sealFor(vault, writer, externalAccountKeyOwner(issuer), text('customer key')),
    });
    const renewal = await insertRenewal(writer, {
      certificate_id: 1,
      requested_by: 'local-cli',
      requested_at: now,
      issuer_id: issuer,
    });
    await updateRenewal(writer, renewal, {
      sealed_private_key: await sealFor(vault, writer, renewalKeyOwner(renewal), text('renewal key')),
    });
    await insertNextKey(writer, {
      certificate_id: 1,
      sealed_private_key: await sealFor(vault, writer, nextKeyOwner(1), text('key of the next version')),
      key_type: 'ec256',
      pin: '',
      created_at: now,
    });
    await writer
      .insertInto('ca_requests')
      .values({
        issuer_id: 1,
        csr: Buffer.from('csr'),
        sealed_private_key: await sealFor(
          vault,
          writer,
          requestedAuthorityKeyOwner(1),
          text('requested key'),
        ),
        created_at: now,
      })
      .execute();
    const none = toJson([]);
    const client = { name: 'client', kid: 'kid', domains: none, issuers: none, profiles: null, rate: null };
    const unused = { expires_at: null, revoked_at: null, last_used_at: null, last_used_ip: null };
    await writer
      .insertInto('acme_clients')
      .values({
        ...{ ...client, ...unused, created_at: now },
        sealed_hmac_key: await sealFor(vault, writer, acmeClientKeyOwner(1), text('binding key')),
      })
      .execute();
    await writer
      .insertInto('administrators')
      .values({ name: 'alice', password_hash: '', created_at: now, last_signed_in_at: null })
      .execute();
    await writer
      .insertInto('authenticator_apps')
      .values({
        ...{ administrator_id: 1, last_step: 0, created_at: now, last_used_at: null },
        sealed_secret: await sealFor(vault, writer, authenticatorSecretOwner(1), text('secret of an app')),
      })
      .execute();
    const gone = { name: 'gone', deleted_at: now, deleted_by: 'local-cli', facts: toJson({}) };
    await writer.insertInto('deleted_certificates').values(gone).execute();
    await writer
      .insertInto('deleted_versions')
      .values({
        deleted_certificate_id: 1,
        version: 3,
        facts: toJson({}),
        sealed_private_key: await sealFor(vault, writer, deletedKeyOwner(1, 3), text('key of a deleted one')),
      })
      .execute();
  });
}

/** Opens every secret in the vault. Returns the secrets and the names of the keys that seal them. */
export async function openEverything(vault: Vault): Promise<{ secrets: string[]; keys: string[] }> {
  const { reader } = vault.db;
  const secrets: string[] = [];
  const blobs: Buffer[] = [];
  const take = (what: string, owner: Parameters<typeof openFor>[1], blob: Buffer | null) => {
    assert(blob, what);
    blobs.push(blob);
    secrets.push(`${what}: ${openFor(vault, owner, blob).expose().toString('base64')}`);
  };
  for (const row of await reader.selectFrom('certificate_versions').selectAll().execute()) {
    const { certificate_id, version } = row;
    take(
      `version ${certificate_id}/${version}`,
      versionKeyOwner(certificate_id, version),
      row.sealed_private_key,
    );
  }
  for (const row of await reader.selectFrom('next_keys').selectAll().execute())
    take(`next ${row.certificate_id}`, nextKeyOwner(row.certificate_id), row.sealed_private_key);
  for (const row of await reader.selectFrom('deleted_versions').selectAll().execute()) {
    const { deleted_certificate_id: id, version } = row;
    take(`deleted ${id}/${version}`, deletedKeyOwner(id, version), row.sealed_private_key);
  }
  for (const row of await reader.selectFrom('ca_certificates').selectAll().execute())
    take(`authority ${row.id}`, authorityKeyOwner(row.id), row.sealed_private_key);
  for (const row of await reader.selectFrom('ca_requests').selectAll().execute())
    take(`authority of ${row.issuer_id}`, requestedAuthorityKeyOwner(row.issuer_id), row.sealed_private_key);
  for (const row of await reader.selectFrom('renewals').selectAll().execute())
    if (row.sealed_private_key !== null)
      take(`renewal ${row.id}`, renewalKeyOwner(row.id), row.sealed_private_key);
  for (const row of await reader.selectFrom('dns_providers').selectAll().execute())
    take(`provider ${row.id}`, dnsSecretOwner(row.id), row.sealed_secret);
  for (const row of await reader.selectFrom('acme_issuers').selectAll().execute())
    take(`issuer ${row.issuer_id}`, externalAccountKeyOwner(row.issuer_id), row.sealed_eab_key);
  for (const row of await reader.selectFrom('acme_clients').selectAll().execute())
    take(`client ${row.id}`, acmeClientKeyOwner(row.id), row.sealed_hmac_key);
  for (const row of await reader.selectFrom('authenticator_apps').selectAll().execute())
    take(`app ${row.id}`, authenticatorSecretOwner(row.id), row.sealed_secret);
  for (const row of await reader.selectFrom('audit_keys').selectAll().execute())
    take(`audit key ${row.id}`, auditKeyOwner(row.public_key), row.sealed_private_key);
  for (const row of await reader.selectFrom('notification_channels').selectAll().execute())
    take(`channel ${row.id}`, channelSettingsOwner(row.id), row.sealed_settings);
  for (const row of await reader.selectFrom('deploy_targets').selectAll().execute())
    take(`target ${row.id}`, targetSettingsOwner(row.id), row.sealed_settings);
  const account = await findAcmeAccount(reader, 1);
  take('account', accountKeyOwner(1), account?.sealed_private_key ?? null);
  take('next account', nextAccountKeyOwner(1), account?.sealed_next_private_key ?? null);
  const places = new Set(sealedPlaceNames.map((name) => sealedPlaces[name].table));
  assert.equal(places.size, 14, 'a sealed column is missing here');
  const keys = new Set(blobs.map((blob) => blob.subarray(1, 9).toString('hex')));
  return { secrets: secrets.sort(), keys: [...keys].sort() };
}
