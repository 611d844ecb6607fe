/** The versions of deleted certificates and the announced next key: sealed again under an owner of their own, and back. */
import { SealError } from '../../crypto/sealing.ts';
import type { Writer } from '../../db/database.ts';
import { findAcmeAccount } from '../../db/tables/acme-accounts.ts';
import {
  type CertificateVersionRow,
  insertVersion,
  listVersions,
} from '../../db/tables/certificate-versions.ts';
import { insertDeletedVersion, listDeletedVersions } from '../../db/tables/deleted-certificates.ts';
import { findNextKey, insertNextKey, type NextKeyRow } from '../../db/tables/next-keys.ts';
import type { SealingContext, SecretsContext } from '../contexts.ts';
import { deletedKeyOwner, nextKeyOwner, openFor, sealFor, versionKeyOwner } from '../sealed-secrets.ts';
import { holdsKey, openVersionKey } from '../versions/versions.ts';

type VersionFacts = Omit<CertificateVersionRow, 'id' | 'certificate_id' | 'version' | 'sealed_private_key'>;

/** The version number under which the announced next key is kept: clients expect its pin. */
const announced = 0;

type NextKeyFacts = Pick<NextKeyRow, 'key_type' | 'pin' | 'created_at'>;

/** Versions copied at a time, so that a certificate with thousands does not fill the memory. */
const versionsPerPage = 100;

/** Copies what belongs to a certificate that is about to be deleted. What cannot be opened is not kept. */
export async function keepVersions(
  vault: SealingContext,
  writer: Writer,
  deletedId: number,
  certificateId: number,
): Promise<void> {
  await unlessDamaged(() => keepNextKey(vault, writer, deletedId, certificateId));
  let before: number | undefined;
  for (;;) {
    const rows = await listVersions(writer, certificateId, { before, limit: versionsPerPage });
    for (const row of rows) await unlessDamaged(() => keepVersion(vault, writer, deletedId, row));
    if (rows.length < versionsPerPage) return;
    before = rows.at(-1)?.version;
  }
}

/** A damaged key must not make the certificate undeletable. */
async function unlessDamaged(keep: () => Promise<void>): Promise<void> {
  try {
    await keep();
  } catch (error) {
    if (!(error instanceof SealError)) throw error;
  }
}

async function keepNextKey(
  vault: SealingContext,
  writer: Writer,
  deletedId: number,
  certificateId: number,
): Promise<void> {
  const row = await findNextKey(writer, certificateId);
  if (row === undefined) return;
  const { key_type, pin, created_at } = row;
  const key = openFor(vault, nextKeyOwner(certificateId), row.sealed_private_key);
  await insertDeletedVersion(writer, {
    deleted_certificate_id: deletedId,
    version: announced,
    facts: JSON.stringify({ key_type, pin, created_at } satisfies NextKeyFacts),
    sealed_private_key: await sealFor(vault, writer, deletedKeyOwner(deletedId, announced), key),
  });
}

async function keepVersion(
  vault: SealingContext,
  writer: Writer,
  deletedId: number,
  row: CertificateVersionRow,
): Promise<void> {
  const { id: _, certificate_id: __, version, sealed_private_key: ___, ...facts } = row;
  await insertDeletedVersion(writer, {
    deleted_certificate_id: deletedId,
    version,
    facts: JSON.stringify(facts satisfies VersionFacts),
    sealed_private_key: holdsKey(row)
      ? await sealFor(vault, writer, deletedKeyOwner(deletedId, version), openVersionKey(vault, row))
      : row.sealed_private_key,
  });
}

/** Gives the versions back to a certificate, and the next key. Returns the versions, oldest first. */
export async function restoreVersions(
  vault: SecretsContext,
  writer: Writer,
  deletedId: number,
  certificateId: number,
): Promise<(VersionFacts & { readonly version: number })[]> {
  const restored = [];
  for (const { version, facts: text, sealed_private_key } of await listDeletedVersions(writer, deletedId)) {
    if (version === announced) {
      const key = openFor(vault, deletedKeyOwner(deletedId, version), sealed_private_key);
      await insertNextKey(writer, {
        ...(JSON.parse(text) as NextKeyFacts),
        certificate_id: certificateId,
        sealed_private_key: await sealFor(vault, writer, nextKeyOwner(certificateId), key),
      });
      continue;
    }
    const facts = JSON.parse(text) as VersionFacts;
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
    restored.push({ ...facts, version });
  }
  return restored;
}
