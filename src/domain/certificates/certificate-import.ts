/** Certificates that were made elsewhere: the first import makes the certificate, each further one a new version. */
import { type CertName, parseNewCertName } from '../../base/cert-name.ts';
import { Problem } from '../../base/problem.ts';
import type { CertificateBundle } from '../../crypto/certificate-bundle.ts';
import { type CertificateFacts, certificateFacts } from '../../crypto/certificate-facts.ts';
import type { Writer } from '../../db/database.ts';
import { findCertificate, insertCertificate, updateCertificate } from '../../db/tables/certificates.ts';
import { type ImportedFiles, readBundleApart } from '../../net/bundle-process.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, SealingContext, SecretsContext, WorldContext } from '../contexts.ts';
import { newCertificateName, parseInput } from '../inputs.ts';
import { notifyRecovered } from '../notifications/certificate-notices.ts';
import { neverRenewed } from '../versions/renewal-plan.ts';
import { addVersion } from '../versions/versions.ts';

/** The files as people have them, with the names to use in messages. */
export type ImportRequest = ImportedFiles & { readonly name: CertName };

/** What files were understood to hold. */
export type ImportPreview = {
  readonly leaf: CertificateFacts;
  /** From the leaf's issuer upwards, without the root. */
  readonly chain: readonly CertificateFacts[];
  readonly warnings: readonly string[];
};

/**
 * Reads the files as an import would, and stores nothing. Throws `invalid_request`, `payload_too_large` and `rate_limited`
 * as that does.
 */
export async function previewImport({ world }: WorldContext, files: ImportedFiles): Promise<ImportPreview> {
  const bundle = await readBundleApart(world, files);
  return {
    leaf: certificateFacts(bundle.leaf),
    chain: bundle.chain.map(certificateFacts),
    warnings: bundle.warnings,
  };
}

/** A name for a certificate with these domains: the first of them that can be a name and is not taken. */
export async function suggestedName(
  { db }: DatabaseContext,
  domains: readonly string[],
): Promise<string | undefined> {
  for (const domain of domains.slice(0, 10)) {
    const name = parseNewCertName(domain.replace(/^\*\./, 'wildcard.').replaceAll(':', '-'));
    if (name !== undefined && (await findCertificate(db.reader, name)) === undefined) return name;
  }
  return undefined;
}

export type ImportResult = { readonly version: number; readonly warnings: readonly string[] };

/**
 * Stores what the files hold as the newest version. Throws `invalid_request` or `payload_too_large` where they cannot
 * be used, `rate_limited` where too many are read already, and `certificate_exists` where the name belongs to a certificate that an issuer makes; nothing is stored then.
 */
export async function importCertificate(
  vault: SecretsContext,
  actor: Actor,
  { name, ...files }: ImportRequest,
): Promise<ImportResult> {
  const bundle = await readBundleApart(vault.world, files);
  const version = await vault.db.write((writer) => storeImport(vault, writer, actor, { name, bundle }));
  return { version, warnings: bundle.warnings };
}

/** The part of `importCertificate` that writes, in the caller's transaction. Returns the number of the version. */
export async function storeImport(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  { name, bundle }: { readonly name: CertName; readonly bundle: CertificateBundle },
): Promise<number> {
  const now = vault.world.now();
  const facts = certificateFacts(bundle.leaf);
  const described = { domains: JSON.stringify(facts.domains), key_type: facts.keyType };
  const existing = await findCertificate(writer, name);
  if (existing !== undefined && existing.issuer_id !== null) {
    throw new Problem('certificate_exists', {
      detail: `"${name}" is made and renewed by an issuer; an import would be replaced at its next renewal.`,
      hint: 'Import under another name, or delete that certificate first.',
    });
  }
  if (existing === undefined) parseInput(newCertificateName, { name });
  const id =
    existing?.id ??
    (await insertCertificate(writer, {
      name,
      ...described,
      issuer_id: null,
      auto_renew: 0,
      reuse_key: 0,
      created_at: now,
    }));
  const added = await addVersion(vault, writer, { id, ...neverRenewed }, { source: 'import', ...bundle });
  await updateCertificate(writer, id, described);
  const detail = {
    version: added,
    fingerprint_sha256: facts.fingerprintSha256,
    new: existing === undefined,
  };
  await record(writer, { actor, action: 'certificate.import', resource: `certificate:${name}`, detail }, now);
  const imported = { id, name, domains: described.domains, issuer_id: null };
  await notifyRecovered(vault.world, writer, imported, added);
  return added;
}
