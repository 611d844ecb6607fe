/**
 * Certificates that ACME clients own: one for each client, issuer and set of names, however often the client orders it.
 * The client has the private key and renews; the vault stores what was issued.
 */
import { parseNewCertName } from '../../../base/cert-name.ts';
import type { Identifier } from '../../../base/identifier.ts';
import { toJson } from '../../../base/json.ts';
import { Problem } from '../../../base/problem.ts';
import { encodePem } from '../../../crypto/pem.ts';
import { certificateFacts } from '../../../crypto/x509/certificate-facts.ts';
import type { Reader, Writer } from '../../../db/database.ts';
import {
  type CertificateVersionRow,
  findVersion,
} from '../../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificate,
  findCertificateById,
  findOwnedCertificate,
  insertWholeCertificate,
  updateCertificate,
} from '../../../db/tables/certificates/certificates.ts';
import type { IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import { together } from '../../../db/together.ts';
import { type Actor, record } from '../../audit/audit.ts';
import type { SealingContext } from '../../contexts.ts';
import { notifyIssued } from '../../notifications/certificate-notices.ts';
import { nameSetOf } from '../../orders/issuance-limits.ts';
import { addVersion, type VersionMaterial } from '../../versions/versions.ts';

/** The ACME client that owns a certificate. */
export type Owner = { readonly id: number; readonly name: string };

/** What an ACME client ordered. */
export type OwnedOrder = {
  readonly client: Owner;
  readonly issuer: Pick<IssuerRow, 'id' | 'name'>;
  readonly identifiers: readonly Identifier[];
  /** DER. */
  readonly csr: Buffer;
  readonly profile: string | undefined;
  readonly actor: Actor;
};

/** The certificate of an ACME client, and one of its versions. */
export type OwnedVersion = { readonly certificate: CertificateRow; readonly version: CertificateVersionRow };

/**
 * Stores what was issued for an order, in the caller's transaction: a new version of the client's certificate with
 * these names, or its first. Two orders of the same names end as two versions of one certificate.
 */
export async function storeIssued(
  vault: SealingContext,
  writer: Writer,
  { material, ...order }: OwnedOrder & { readonly material: VersionMaterial },
): Promise<{ readonly certificateId: number; readonly version: number; readonly name: string }> {
  const now = vault.world.now();
  const facts = certificateFacts(material.leaf);
  const { keyType } = facts;
  const certificate = await certificateFor(writer, { ...order, keyType }, now);
  const { id, name } = certificate;
  const version = await addVersion(vault, writer, certificate, { ...material, facts });
  const { actor, issuer, identifiers, profile } = order;
  const detail = {
    ...{ version, domains: identifiers, key_type: keyType, issuer: issuer.name },
    ...(profile !== undefined && { profile }),
  };
  record(writer, { actor, action: 'certificate.issue', resource: `certificate:${name}`, detail }, now);
  await together([
    updateCertificate(writer, id, { last_attempt_at: now }),
    notifyIssued(vault.world, writer, certificate, version),
  ]);
  return { certificateId: id, version, name };
}

/**
 * The client's certificate with the names of the order, which then has the settings of the order; created if there is
 * none.
 */
export async function certificateFor(
  writer: Writer,
  {
    client,
    issuer,
    identifiers,
    csr,
    profile,
    keyType,
  }: Omit<OwnedOrder, 'actor'> & { readonly keyType: string },
  now: number,
): Promise<CertificateRow> {
  const settings = {
    key_type: keyType,
    profile: profile ?? null,
    csr: encodePem('CERTIFICATE REQUEST', csr),
  };
  const owned_names = nameSetOf(identifiers);
  const [first = '', ...others] = possibleNames(client, identifiers, owned_names);
  const [known, taken] = await together([
    findOwnedCertificate(writer, client.id, issuer.id, owned_names),
    findCertificate(writer, first),
  ]);
  if (known !== undefined) {
    await updateCertificate(writer, known.id, settings);
    return { ...known, ...settings };
  }
  return insertWholeCertificate(writer, {
    name: taken === undefined ? first : await freeName(writer, client, identifiers, others),
    domains: toJson(identifiers),
    auto_renew: 0,
    reuse_key: 0,
    created_at: now,
    issuer_id: issuer.id,
    acme_client_id: client.id,
    owned_names,
    ...settings,
  });
}

/** The client's certificate with exactly these names, in any order. */
export function findOwned(
  reader: Reader,
  client: Pick<Owner, 'id'>,
  issuer: Pick<IssuerRow, 'id'>,
  identifiers: readonly Identifier[],
): Promise<CertificateRow | undefined> {
  return findOwnedCertificate(reader, client.id, issuer.id, nameSetOf(identifiers));
}

/** This version of this certificate if the client owns it. */
export async function ownedCertificate(
  reader: Reader,
  client: Pick<Owner, 'id'>,
  certificateId: number,
  version: number,
): Promise<OwnedVersion | undefined> {
  const certificate = await findCertificateById(reader, certificateId);
  if (certificate?.acme_client_id !== client.id) return undefined;
  const row = await findVersion(reader, certificateId, version);
  return row && { certificate, version: row };
}

/** Characters of an identifier and of a client's name in the name of a certificate, which has 128 at most. */
const maxStemLength = 60;
const maxOwnerLength = 30;

/** Names for a new certificate: the first identifier, then with the name of the client, then with a number. */
function possibleNames({ name: owner }: Owner, identifiers: readonly Identifier[], set: string): string[] {
  const [first] = identifiers;
  const stem = stemOf(first ?? '');
  const short = `${stem.slice(0, maxStemLength)}-${owner.replaceAll(/[^A-Za-z0-9._-]/g, '-').slice(0, maxOwnerLength)}`;
  return [
    ...(stem.length > maxStemLength ? [] : [stem]),
    short,
    ...[2, 3, 4, 5, 6, 7, 8, 9].map((number) => `${short}-${number}`),
    // A client may have thousands of certificates that begin with the same name.
    `${short}-${set}`,
  ];
}

/** The first of the names that no certificate has. */
async function freeName(
  reader: Reader,
  { name: owner }: Owner,
  [first]: readonly Identifier[],
  names: readonly string[],
): Promise<string> {
  for (const name of names) if ((await findCertificate(reader, name)) === undefined) return name;
  throw new Problem('certificate_exists', {
    detail: `Other certificates have all names that a certificate for ${first} of the ACME client ${owner} could have.`,
    hint: 'Delete those certificates that are no longer needed.',
  });
}

function stemOf(identifier: string): string {
  const stem = identifier.replace(/^\*\./, 'wildcard.').replaceAll(':', '-');
  return parseNewCertName(stem) === undefined && stem.startsWith('-') ? `ip${stem}` : stem;
}
