/**
 * The versions of certificates that vaults before schema 22 deleted, and their next keys: sealed under an owner of
 * their own.
 */
import { parseJson } from '../../base/json.ts';
import type { Writer } from '../../db/database.ts';
import {
  type CertificateVersionRow,
  insertVersion,
} from '../../db/tables/certificates/certificate-versions.ts';
import { listDeletedVersions } from '../../db/tables/certificates/deleted-certificates.ts';
import { insertNextKey, type NextKeyRow } from '../../db/tables/certificates/next-keys.ts';
import { findAcmeAccount } from '../../db/tables/issuance/acme-accounts.ts';
import type { SecretsContext } from '../contexts.ts';
import { deletedKeyOwner, nextKeyOwner, openFor, sealFor, versionKeyOwner } from '../sealed-secrets.ts';
import { holdsKey } from '../versions/versions.ts';

type VersionFacts = Omit<CertificateVersionRow, 'id' | 'certificate_id' | 'version' | 'sealed_private_key'>;

/** The version number under which the announced next key is kept: clients expect its pin. */
const announced = 0;

type NextKeyFacts = Pick<NextKeyRow, 'key_type' | 'pin' | 'created_at'>;

/** Moves the versions back to a certificate, and the next key. */
export async function moveBack(
  vault: SecretsContext,
  writer: Writer,
  deletedId: number,
  certificateId: number,
): Promise<void> {
  for (const { version, facts: text, sealed_private_key } of await listDeletedVersions(writer, deletedId)) {
    if (version === announced) {
      const key = openFor(vault, deletedKeyOwner(deletedId, version), sealed_private_key);
      await insertNextKey(writer, {
        ...(parseJson(text) as NextKeyFacts),
        certificate_id: certificateId,
        sealed_private_key: await sealFor(vault, writer, nextKeyOwner(certificateId), key),
      });
      continue;
    }
    const facts = parseJson(text) as VersionFacts;
    const account = await findAcmeAccount(writer, facts.acme_account_id ?? 0);
    const key = holdsKey(facts)
      ? openFor(vault, deletedKeyOwner(deletedId, version), sealed_private_key)
      : undefined;
    await insertVersion(writer, {
      ...facts,
      acme_account_id: account?.directory_url === facts.directory_url ? facts.acme_account_id : null,
      certificate_id: certificateId,
      version,
      sealed_private_key:
        key === undefined
          ? sealed_private_key
          : await sealFor(vault, writer, versionKeyOwner(certificateId, version), key),
    });
  }
}
