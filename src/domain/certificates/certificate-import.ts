/**
 * Imports of certificates issued elsewhere: the first import creates the certificate, each further one adds a version.
 */
import { type CertName, parseNewCertName } from '../../base/cert-name.ts';
import { uncoveredNames } from '../../base/covered-names.ts';
import { parseJson, toJson } from '../../base/json.ts';
import { Problem } from '../../base/problem.ts';
import type { CertificateBundle } from '../../crypto/bundles/certificate-bundle.ts';
import { encodePem } from '../../crypto/pem.ts';
import { type CertificateFacts, certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import type { Reader, Writer } from '../../db/database.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import {
  findCertificate,
  insertCertificate,
  updateCertificate,
} from '../../db/tables/certificates/certificates.ts';
import { type ImportedFiles, readBundleApart } from '../../net/bundle-process.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, SealingContext, SecretsContext, WorldContext } from '../contexts.ts';
import { newCertificateName, parseInput } from '../inputs.ts';
import { labelsOf, storeLabels } from '../labels/certificate-labelling.ts';
import { notifyRecovered } from '../notifications/certificate-notices.ts';
import { neverRenewed } from '../schedule/renewal-plan.ts';
import { refuseOwned } from '../versions/certificate-owners.ts';
import { addVersion } from '../versions/versions.ts';

/** How many lost domains an error lists. */
const namesShown = 5;

/** The files to import, with their names for error messages. `force` adds a version that equals the current one. */
export type ImportRequest = ImportedFiles & {
  readonly name: CertName;
  readonly force?: boolean | undefined;
  /** Whether the new version may lack domains of the current one. */
  readonly allowLostDomains?: boolean | undefined;
  /** Of a new certificate; an existing one must have them already. */
  readonly labels?: readonly string[] | undefined;
};

/** What the files contain. */
export type ImportPreview = {
  readonly leaf: CertificateFacts;
  /** From the leaf's issuer upwards, without the root. */
  readonly chain: readonly CertificateFacts[];
  readonly warnings: readonly string[];
};

/**
 * Reads the files like an import, but stores nothing. Throws the same errors: `invalid_request`, `payload_too_large`
 * and `rate_limited`.
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

export type ImportResult = {
  readonly version: number;
  /** Whether the import added this version; otherwise it was current before. */
  readonly changed: boolean;
  readonly warnings: readonly string[];
};

/**
 * Stores the certificate and key of the files as the newest version, unless the current one is the same. Throws
 * `invalid_request` or `payload_too_large` for files that cannot be used, `rate_limited` during too many imports,
 * `certificate_exists` if an issuer renews the certificate of this name, `not_renewable` if an ACME client owns it, and
 * `domains_lost` if the new version lacks domains of the current one; nothing is stored then.
 */
export async function importCertificate(
  vault: SecretsContext,
  actor: Actor,
  { name, force, allowLostDomains, labels, ...files }: ImportRequest,
): Promise<ImportResult> {
  const bundle = await readBundleApart(vault.world, files);
  return vault.db.write(async (writer) => {
    if (labels !== undefined) await refuseOtherLabels(writer, name, labels);
    const same = force === true ? undefined : await versionHolding(writer, name, bundle);
    if (same === undefined && allowLostDomains !== true) await refuseLostDomains(writer, name, bundle);
    const version = same ?? (await storeImport(vault, writer, actor, { name, bundle, labels }));
    return { version, changed: same === undefined, warnings: bundle.warnings };
  });
}

/** Throws `invalid_request` if the certificate exists and has other labels. */
async function refuseOtherLabels(reader: Reader, name: CertName, labels: readonly string[]): Promise<void> {
  const existing = await findCertificate(reader, name);
  if (existing === undefined || labelsOf(existing).join() === labels.join()) return;
  const message = `certificate "${name}" exists and has other labels`;
  throw new Problem('invalid_request', {
    detail: `labels: ${message}.`,
    errors: [{ path: 'labels', message }],
    hint: `Leave them out, and change them with "vault certificate update --name ${name} --label".`,
  });
}

/** The current version of an imported certificate if it has this chain. Its key is the same: it belongs to the leaf. */
async function versionHolding(
  reader: Reader,
  name: CertName,
  { leaf, chain }: CertificateBundle,
): Promise<number | undefined> {
  const certificate = await findCertificate(reader, name);
  if (certificate?.current_version == null || certificate.issuer_id !== null) return undefined;
  const current = await findVersion(reader, certificate.id, certificate.current_version);
  const fullchain = [leaf, ...chain].map((der) => encodePem('CERTIFICATE', der)).join('');
  const isSame = current !== undefined && current.certificate_pem + current.chain_pem === fullchain;
  return isSame ? current.version : undefined;
}

/** Throws `domains_lost` if the name is that of another imported certificate, as after a mistyped name. */
async function refuseLostDomains(reader: Reader, name: CertName, { leaf }: CertificateBundle): Promise<void> {
  const existing = await findCertificate(reader, name);
  if (existing?.current_version == null || existing.issuer_id !== null) return;
  const lost = uncoveredNames(parseJson<string[]>(existing.domains), certificateFacts(leaf).domains);
  if (lost.length === 0) return;
  const more = lost.length > namesShown ? ` and ${lost.length - namesShown} more` : '';
  const message = `the new version of ${name} would no longer cover ${lost.slice(0, namesShown).join(', ')}${more}`;
  throw new Problem('domains_lost', {
    detail: `The${message.slice(3)}.`,
    hint: 'Check the name; if it is right, use --allow-lost-domains (`allow_lost_domains` over HTTP).',
    errors: [{ path: 'allow_lost_domains', message }],
  });
}

/** The part of `importCertificate` that writes, in the caller's transaction. Returns the number of the version. */
export async function storeImport(
  vault: SealingContext,
  writer: Writer,
  actor: Actor,
  {
    name,
    bundle,
    labels = [],
  }: Pick<ImportRequest, 'name' | 'labels'> & { readonly bundle: CertificateBundle },
): Promise<number> {
  const now = vault.world.now();
  const facts = certificateFacts(bundle.leaf);
  const described = { domains: toJson(facts.domains), key_type: facts.keyType };
  const existing = await findCertificate(writer, name);
  if (existing !== undefined) await refuseOwned(writer, existing);
  if (existing !== undefined && existing.issuer_id !== null) {
    throw new Problem('certificate_exists', {
      detail: `Certificate "${name}" is renewed by an issuer; its next renewal would replace the import.`,
      hint: 'Import under another name, or delete the existing certificate first.',
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
  const labelled =
    existing === undefined && labels.length > 0 ? await storeLabels(writer, { id, name }, labels) : {};
  const added = await addVersion(vault, writer, { id, ...neverRenewed }, { source: 'import', ...bundle });
  await updateCertificate(writer, id, { ...described, csr: null });
  const detail = {
    version: added,
    fingerprint_sha256: facts.fingerprintSha256,
    new: existing === undefined,
    ...labelled,
  };
  record(writer, { actor, action: 'certificate.import', resource: `certificate:${name}`, detail }, now);
  const imported = { id, name, domains: described.domains, issuer_id: null };
  await notifyRecovered(vault.world, writer, imported, added);
  return added;
}
