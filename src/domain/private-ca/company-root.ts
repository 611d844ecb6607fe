/**
 * A private CA under the root of a company: the company's CA signed its intermediate, whose key the vault holds. What
 * the certificates of the company forbid, the vault does not issue.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { Problem } from '../../base/problem.ts';
import { type ReturnedAuthority, readReturnedAuthority } from '../../crypto/bundles/returned-authority.ts';
import { publicKeyOf } from '../../crypto/key-pair.ts';
import { certificateFacts } from '../../crypto/x509/certificate-facts.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type CaCertificateRow,
  findCaCertificateById,
  findRoot,
  insertCaCertificate,
  listRoots,
  setGeneration,
} from '../../db/tables/issuance/ca-certificates.ts';
import { type CaRequestRow, deleteCaRequest, findCaRequest } from '../../db/tables/issuance/ca-requests.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { openFor, requestedAuthorityKeyOwner } from '../sealed-secrets.ts';
import { insertAuthority, issuingIntermediate } from './authorities.ts';
import { inheritedChain, neededUntil } from './ca-chains.ts';
import { settingsOfCa } from './ca-settings.ts';
import { forbiddenBy, refuseForbiddenBy } from './inherited-constraints.ts';
import { leftBehind } from './left-behind.ts';
import type { CertifiedNames } from './permitted-names.ts';
import type { PrivateCa } from './rotation.ts';

export type CompanyImport = {
  /** The subject of the company's root. */
  readonly root: string;
  /** Nothing that is issued is valid for longer (UTC milliseconds). */
  readonly notAfter: number;
  /** The root before, if it was another one. */
  readonly former: CaCertificateRow | undefined;
  /** The last certificate under it expires by then (UTC milliseconds). */
  readonly formerUntil: number;
};

export type ImportOptions = {
  /** Whether certificates may be left behind whose renewals fail, because the company does not permit their names. */
  readonly force: boolean;
};

/**
 * Takes the certificate of the pending key with the chain up to the company's root (PEM), and issues under it from now
 * on. Throws `invalid_request` for a chain that does not fit, and OperatorError if no request is pending; then nothing
 * is changed.
 */
export async function importAuthority(
  vault: SecretsContext,
  actor: Actor,
  ca: PrivateCa,
  file: Buffer,
  { force }: ImportOptions,
): Promise<CompanyImport> {
  const { db, world } = vault;
  const pending = await findCaRequest(db.reader, ca.id);
  if (pending === undefined) throw nothingPending(ca);
  const privateKey = openFor(vault, requestedAuthorityKeyOwner(ca.id), pending.sealed_private_key);
  const now = world.now();
  const returned = readReturnedAuthority(file, publicKeyOf(privateKey), now);
  const chain = [returned.authority, ...returned.upper, returned.root].map(({ der }) => der);
  const seen = force ? 0 : await refuseLeftBehind(db.reader, ca, chain, 0);
  const { authority, upper, notAfter } = returned;
  const { notBefore } = certificateFacts(authority.der);
  const row = { certificate: authority.der, constraints: null, not_before: notBefore, not_after: notAfter };
  return db.write(async (writer) => {
    await refuseReplaced(writer, ca, pending);
    // Those that were created meanwhile.
    if (!force) await refuseLeftBehind(writer, ca, chain, seen);
    const former = await findRoot(writer, ca.id);
    const root = await placeRoot(writer, ca, returned, now);
    await insertAuthority(
      vault,
      writer,
      ca.id,
      { row: { ...row, role: 'intermediate', created_at: now }, privateKey },
      { signer_id: root.id, upper_chain: Buffer.concat(upper.map(({ der }) => der)) },
    );
    await deleteCaRequest(writer, ca.id);
    const facts = certificateFacts(root.certificate);
    const detail = {
      root_fingerprint_sha256: facts.fingerprintSha256,
      fingerprint_sha256: certificateFacts(authority.der).fingerprintSha256,
    };
    record(writer, { actor, action: 'issuer.ca_import', resource: `issuer:${ca.name}`, detail }, now);
    const isOther = former !== undefined && former.id !== root.id;
    return {
      root: facts.subject,
      notAfter,
      former: isOther ? former : undefined,
      formerUntil: isOther ? await neededUntil(writer, former) : 0,
    };
  });
}

/** The root of the company as the current one: stored before, by an earlier import, or now. */
async function placeRoot(
  writer: Writer,
  ca: PrivateCa,
  { root }: ReturnedAuthority,
  now: number,
): Promise<CaCertificateRow> {
  const roots = await listRoots(writer, ca.id);
  const generation = (roots[0]?.generation ?? 0) + 1;
  const known = roots.find((row) => row.is_external === 1 && row.certificate.equals(root.der));
  if (known !== undefined) {
    if (known.id !== roots[0]?.id) await setGeneration(writer, known.id, generation);
    return known;
  }
  const { notBefore, notAfter } = certificateFacts(root.der);
  const id = await insertCaCertificate(writer, {
    issuer_id: ca.id,
    role: 'root',
    certificate: root.der,
    sealed_private_key: Buffer.alloc(0),
    constraints: null,
    not_before: notBefore,
    not_after: notAfter,
    created_at: now,
    generation,
    is_external: 1,
  });
  const stored = await findCaCertificateById(writer, id);
  if (stored === undefined) throw new Error('the root that was stored is missing');
  return stored;
}

/**
 * Throws `invalid_request` if certificates with an id above `after` use the issuer for names that the chain does not
 * permit. Returns the last id that was checked.
 */
async function refuseLeftBehind(
  reader: Reader,
  ca: PrivateCa,
  chain: readonly Buffer[],
  after: number,
): Promise<number> {
  const { shown, last } = await leftBehind(reader, ca.id, (names) => forbiddenBy(chain, names), after);
  if (shown === undefined) return last;
  const message = `certificates that ${ca.name} renews have names that the company's CA does not permit: ${shown}`;
  throw new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    hint: 'Move them to another issuer first, or ask the company for a certificate that permits them. With force, their renewals fail.',
    errors: [{ path: 'chain', message }],
  });
}

async function refuseReplaced(reader: Reader, ca: PrivateCa, pending: CaRequestRow): Promise<void> {
  const current = await findCaRequest(reader, ca.id);
  if (current?.csr.equals(pending.csr) === true) return;
  throw new OperatorError(`the request of ${ca.name} was replaced or imported by another command meanwhile`, {
    hint: 'Nothing was changed.',
  });
}

function nothingPending({ name }: PrivateCa): OperatorError {
  return new OperatorError(`there is no pending request for private CA ${name}`, {
    hint: `Create one, and import the certificate that the company's CA issues for it.\nTry: vault ca csr --issuer ${name} --out vault.csr`,
  });
}

/** Throws `invalid_request` if a private CA is under the root of a company that does not permit one of the names. */
export async function refuseByCompany(reader: Reader, ca: PrivateCa, names: CertifiedNames): Promise<void> {
  refuseForbiddenBy(ca.name, await companyChain(reader, ca.id), names);
}

/** The CA certificates (DER) of a company above what a private CA issues; none under a root of the vault. */
export async function companyChain(reader: Reader, issuerId: number): Promise<Buffer[]> {
  const root = await findRoot(reader, issuerId);
  if (root === undefined || root.is_external === 0) return [];
  const intermediate = await issuingIntermediate(reader, root, await settingsOfCa(reader, issuerId));
  return intermediate === undefined ? [] : inheritedChain({ root, intermediate });
}
