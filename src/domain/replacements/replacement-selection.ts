/** Which certificates a replacement is about, and which of them require action. */
import { X509Certificate } from 'node:crypto';
import { Problem } from '../../base/problem.ts';
import type { Reader } from '../../db/database.ts';
import type { ReplacementReason } from '../../db/schema/schema-replacements.ts';
import { findOwner } from '../../db/tables/certificates/certificate-owners.ts';
import {
  type CertificateVersionRow,
  findVersion,
  pageCurrentVersions,
} from '../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificate,
  findCertificateById,
} from '../../db/tables/certificates/certificates.ts';
import { nextRange } from '../../db/tables/id-ranges.ts';
import { findSameCaCertificate } from '../../db/tables/issuance/ca-certificates.ts';
import { findAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import { profileOf } from '../access/profile-confinement.ts';
import { pagesOfCertificates } from '../certificates/certificate-search.ts';
import type { LoggedContext } from '../contexts.ts';
import { requireIssuer } from '../issuers/issuers.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import type { ReplacementRequest, ReplacementSelection } from './replacement-inputs.ts';

/** A selected certificate with its current version. */
export type SelectedCertificate = {
  readonly certificate: CertificateRow;
  readonly current: CertificateVersionRow;
  /** `issuer/profile` of a certificate with a profile of a private CA. */
  readonly profile: string | undefined;
  /** Why the vault cannot replace it, as a clause; undefined if it can. */
  readonly obstacle: string | undefined;
};

/** Whether the caller may replace the certificate of this name. */
export type Permits = (name: string) => boolean | Promise<boolean>;

/** Certificates that a query looks through: a few milliseconds of work. */
const scannedAtOnce = 500;

/** Certificates that are read before requests are answered in between. */
const readAtOnce = 50;

/**
 * The certificates of the request that have a version and that `permits` leaves, in portions. Throws
 * `certificate_not_found` and `no_current_version` for one certificate, and `invalid_request` for an unknown issuer.
 */
export async function* selectedCertificates(
  vault: LoggedContext,
  { selection, reason }: Pick<ReplacementRequest, 'selection' | 'reason'>,
  permits: Permits,
): AsyncGenerator<readonly SelectedCertificate[]> {
  const { reader } = vault.db;
  for await (const rows of candidates(vault, selection)) {
    const selected: SelectedCertificate[] = [];
    for (const [index, certificate] of rows.entries()) {
      if (index > 0 && index % readAtOnce === 0) await vault.world.turn();
      const { current_version: number } = certificate;
      const current = number === null ? undefined : await findVersion(reader, certificate.id, number);
      if (current === undefined) {
        if (selection.certificate !== undefined) throw new Problem('no_current_version');
        continue;
      }
      if (!(await permits(certificate.name))) continue;
      const obstacle = await obstacleTo(reader, certificate, reason);
      selected.push({ certificate, current, profile: await profileOf(reader, certificate), obstacle });
    }
    yield selected;
    await vault.world.turn();
  }
}

async function* candidates(
  vault: LoggedContext,
  { issuer, labels, certificate }: ReplacementSelection,
): AsyncGenerator<readonly CertificateRow[]> {
  const { reader } = vault.db;
  if (certificate !== undefined) {
    yield [await requireCertificate(reader, certificate)];
  } else if (issuer !== undefined) {
    yield* issuedBy(vault, issuer);
  } else {
    for await (const page of pagesOfCertificates(vault, { labels })) {
      for (let from = 0; from < page.length; from += readAtOnce) {
        const names = page.slice(from, from + readAtOnce).map(({ name }) => name);
        const rows = await Promise.all(names.map((name) => findCertificate(reader, name)));
        yield rows.filter((row) => row !== undefined);
      }
    }
  }
}

/** The certificates whose current version this issuer issued, even if another one renews them now. */
async function* issuedBy({ db, world }: LoggedContext, name: string): AsyncGenerator<CertificateRow[]> {
  const { reader } = db;
  const { id } = await requireIssuer(reader, name, 'issuer');
  const directoryUrl = (await findAcmeIssuer(reader, id))?.directory_url ?? null;
  const ofChain = new Map<string, boolean>();
  const isOurs = async (chain: string) => {
    const known = ofChain.get(chain) ?? (chain !== '' && (await isChainOf(reader, chain, id)));
    ofChain.set(chain, known);
    return known;
  };
  for (let after = 0; ; ) {
    const range = await nextRange(reader, 'certificates', after, scannedAtOnce);
    if (range === undefined) return;
    const rows: CertificateRow[] = [];
    for (const { certificate_id, chain_pem } of await pageCurrentVersions(reader, range, directoryUrl)) {
      if (directoryUrl === null && !(await isOurs(chain_pem))) continue;
      const row = await findCertificateById(reader, certificate_id);
      if (row !== undefined) rows.push(row);
    }
    yield rows;
    after = range.last;
    await world.turn();
  }
}

/** Whether the first certificate of the chain is one of this private CA. */
async function isChainOf(reader: Reader, chain: string, issuerId: number): Promise<boolean> {
  const found = await findSameCaCertificate(reader, new X509Certificate(chain).raw);
  return found?.issuer_id === issuerId;
}

/** Why the vault cannot replace the certificate, as a clause; undefined if it can. */
export async function obstacleTo(
  reader: Reader,
  { acme_client_id: client, issuer_id, disabled_at, csr }: CertificateRow,
  reason: ReplacementReason,
): Promise<string | undefined> {
  if (client !== null) {
    const owner = await findOwner(reader, client);
    return `the ACME client ${owner?.name ?? client} renews it`;
  }
  if (issuer_id === null) return 'it was imported and has no issuer';
  if (disabled_at !== null) return 'it is disabled';
  if (csr !== null && reason === 'key-compromised') {
    return 'the client holds its private key and must send a CSR with another one';
  }
  return undefined;
}
