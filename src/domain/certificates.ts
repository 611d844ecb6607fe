/** Certificates come into being, are looked up, and are removed. */
import { type CertName, parseCertName } from '../base/cert-name.ts';
import { Problem } from '../base/problem.ts';
import { generatePrivateKey } from '../crypto/key-pair.ts';
import { apiKeysNaming, removeFromAllowlists } from '../db/api-key-certificates.ts';
import {
  type CertificateRow,
  deleteCertificateRow,
  findCertificate,
  insertCertificate,
  listCertificateNames,
} from '../db/certificates.ts';
import type { Reader } from '../db/database.ts';
import { findIssuer, listIssuers } from '../db/issuers.ts';
import { type Actor, record } from './audit.ts';
import { didYouMean } from './closest-names.ts';
import type { CreateCertificateInput } from './inputs.ts';
import { issueFromLocalCa } from './local-ca.ts';
import type { Vault } from './vault.ts';
import { addVersion } from './versions.ts';

/** How many names are looked through for what somebody may have meant. */
const namesToCompare = 10_000;

/**
 * The certificate of this name. Throws `certificate_not_found`, also for what cannot be a name; the message offers
 * the closest names where `suggest` says that the caller may know them all.
 */
export async function requireCertificate(
  reader: Reader,
  name: string,
  { suggest }: { readonly suggest: boolean } = { suggest: false },
): Promise<CertificateRow> {
  const row = parseCertName(name) && (await findCertificate(reader, name));
  if (row !== undefined) return row;
  throw new Problem('certificate_not_found', {
    detail: `There is no certificate called ${JSON.stringify(name)}.`,
    ...(suggest && { hint: await suggestName(reader, name) }),
  });
}

/** A sentence that offers the closest names of certificates. */
export async function suggestName(reader: Reader, name: string): Promise<string> {
  const names = await listCertificateNames(reader, namesToCompare);
  return didYouMean(name, names, 'List those that exist with "vault certificate list".');
}

/**
 * Makes a certificate with version 1 from the private CA. Certificate, version and audit events are one transaction:
 * either all of it is there afterwards, or nothing. Throws `certificate_exists` and `invalid_request`.
 */
export async function createCertificate(
  vault: Vault,
  actor: Actor,
  input: CreateCertificateInput,
): Promise<void> {
  const { db, world } = vault;
  const issuer = await findIssuer(db.reader, input.issuer);
  if (issuer === undefined) {
    const known = (await listIssuers(db.reader)).map(({ name }) => name);
    throw new Problem('invalid_request', {
      detail: `There is no issuer called ${JSON.stringify(input.issuer)}.`,
      hint: `Use one of: ${known.join(', ')}.`,
      errors: [{ path: 'issuer', message: 'there is no such issuer' }],
    });
  }
  await refuseTaken(db.reader, input.name);
  const privateKey = await generatePrivateKey(input.key_type);
  const { leaf, chain } = await issueFromLocalCa(vault, {
    identifiers: input.domains,
    privateKey,
    lifetime: input.lifetime,
  });
  await db.write(async (writer) => {
    await refuseTaken(writer, input.name);
    const now = world.now();
    const id = await insertCertificate(writer, {
      name: input.name,
      domains: JSON.stringify(input.domains),
      key_type: input.key_type,
      issuer_id: issuer.id,
      auto_renew: 1,
      reuse_key: input.reuse_key ? 1 : 0,
      lifetime: input.lifetime ?? null,
      created_at: now,
    });
    const resource = `certificate:${input.name}`;
    const detail = { domains: input.domains, key_type: input.key_type, issuer: issuer.name };
    await record(writer, { actor, action: 'certificate.create', resource, detail }, now);
    const version = await addVersion(
      vault,
      writer,
      { id, renewable: true },
      { source: 'local-ca', leaf, chain, privateKey },
    );
    await record(writer, { actor, action: 'certificate.issue', resource, detail: { version } }, now);
  });
}

async function refuseTaken(reader: Reader, name: CertName): Promise<void> {
  if ((await findCertificate(reader, name)) === undefined) return;
  throw new Problem('certificate_exists', {
    detail: `A certificate called "${name}" exists already.`,
    hint: `Look at it with "vault certificate show --name ${name}", or choose another name.`,
  });
}

/**
 * Removes a certificate with all its versions and keys. Throws `certificate_not_found`, and `certificate_in_use` while
 * the allowlist of a key that is not revoked names it, unless `force` is set; then it leaves all allowlists.
 */
export async function deleteCertificate(
  { db, world }: Vault,
  actor: Actor,
  name: string,
  { force }: { readonly force: boolean },
): Promise<void> {
  await db.write(async (writer) => {
    const certificate = await requireCertificate(writer, name, { suggest: true });
    const naming = await apiKeysNaming(writer, certificate.id);
    const active = naming.filter(({ revoked_at }) => revoked_at === null);
    if (active.length > 0 && !force) {
      const keys = active.slice(0, 5).map((key) => `${key.id} (${key.name})`);
      throw new Problem('certificate_in_use', {
        detail: `API keys still name "${name}" in their allowlists: ${keys.join(', ')}${active.length > 5 ? ' …' : ''}.`,
        hint: 'Revoke them first, or take the certificate out of their allowlists with --force.',
      });
    }
    await removeFromAllowlists(writer, certificate.id);
    await deleteCertificateRow(writer, certificate.id);
    const detail = {
      versions: certificate.current_version ?? 0,
      removed_from_api_keys: naming.map(({ id }) => id),
    };
    await record(
      writer,
      { actor, action: 'certificate.delete', resource: `certificate:${name}`, detail },
      world.now(),
    );
  });
}
