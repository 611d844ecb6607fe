/**
 * The CA certificates of a private CA. Its root signs only intermediates; a new intermediate is created when the newest
 * one expires too early.
 */
import { day, minute } from '../../base/duration.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey, publicKeyOf } from '../../crypto/key-pair.ts';
import { issueIntermediate, issueRoot, type X509Issuer } from '../../crypto/x509/x509-issuance.ts';
import type { Reader, Writer } from '../../db/database.ts';
import {
  type CaCertificateRow,
  findCaCertificateById,
  findIntermediate,
  findRoot,
  insertCaCertificate,
  listIntermediates,
  setCaPrivateKey,
} from '../../db/tables/issuance/ca-certificates.ts';
import type { KeyringContext, SealingContext, SecretsContext, WorldContext } from '../contexts.ts';
import { authorityKeyOwner, openFor, sealFor } from '../sealed-secrets.ts';
import { intermediateExpired, rootKeyMissing } from './authority-refusals.ts';
import { authorityLimits, type CaSettings, constraintsText } from './ca-settings.ts';

const rootLifetime = 3650 * day;
const intermediateLifetime = 5 * 365 * day;
/** Certificates start a little in the past, for clients whose clock is behind. */
const backdating = 5 * minute;

/** The length of serial numbers in bytes. */
export const serialSize = 16;

/** A CA certificate that is not stored yet. */
export type AuthorityDraft = {
  readonly row: Pick<
    CaCertificateRow,
    'role' | 'certificate' | 'constraints' | 'not_before' | 'not_after' | 'created_at'
  >;
  readonly privateKey: Secret;
};

/** A new private CA: a root, and the intermediate that it signed. */
export async function draftAuthorities(
  vault: WorldContext,
  settings: CaSettings,
): Promise<{ readonly root: AuthorityDraft; readonly intermediate: AuthorityDraft }> {
  const root = await draftRoot(vault, settings);
  const { certificate, not_after: notAfter } = root.row;
  const issuer = { certificate, privateKey: root.privateKey, notAfter };
  return { root, intermediate: await draftIntermediate(vault, settings, issuer) };
}

/** A root that signed itself. Without `commonName`, it is called as the settings have it. */
export async function draftRoot(
  vault: WorldContext,
  settings: CaSettings,
  commonName = settings.commonName ?? `Certificate Vault Root ${label(vault)}`,
): Promise<AuthorityDraft> {
  const now = vault.world.now();
  const privateKey = await generatePrivateKey('ec384');
  const dates = validity(now, rootLifetime);
  const certificate = await issueRoot({
    commonName,
    privateKey,
    serial: vault.world.randomBytes(serialSize),
    ...issued(dates),
    // One more, for the certificate that links its successor to it.
    ...authorityLimits(settings, settings.pathLength + 1),
  });
  const constraints = constraintsText(settings);
  const row = { role: 'root' as const, certificate, constraints, ...dates };
  return { row: { ...row, created_at: now }, privateKey };
}

/**
 * The intermediate that issues at present: of those of the root with the constraints of the CA, the one that expires
 * last. Under the root of a company, whose CA sets the constraints, the one that was imported last.
 */
export async function issuingIntermediate(
  reader: Reader,
  root: CaCertificateRow,
  settings: CaSettings,
): Promise<CaCertificateRow | undefined> {
  if (root.is_external === 1) {
    const all = await listIntermediates(reader, root);
    return all.toSorted((a, b) => b.id - a.id)[0];
  }
  return findIntermediate(reader, root, constraintsText(settings));
}

/** The root that a private CA issues under. */
export async function requireRoot(reader: Reader, issuerId: number): Promise<CaCertificateRow> {
  const root = await findRoot(reader, issuerId);
  if (root === undefined) throw new Error('the private CA has no root');
  return root;
}

/** A root, and the intermediate under it that issues. */
export type IssuingAuthority = { readonly root: CaCertificateRow; readonly intermediate: CaCertificateRow };

/**
 * The intermediate that issues at present, or a new one if it expires before `notAfter` and the root is valid for
 * longer, or if the constraints of the CA changed. Without the root's key, the one that there is is used until it
 * expires. Throws OperatorError when only the root's key helps.
 */
export async function intermediateUntil(
  vault: SecretsContext,
  issuerId: number,
  settings: CaSettings,
  notAfter: number,
): Promise<IssuingAuthority> {
  const root = await requireRoot(vault.db.reader, issuerId);
  const newest = await issuingIntermediate(vault.db.reader, root, settings);
  const isLongEnough = (row: CaCertificateRow) => row.not_after >= Math.min(notAfter, root.not_after);
  if (newest !== undefined && isLongEnough(newest)) return { root, intermediate: newest };
  if (!holdsKey(root)) {
    if (newest !== undefined && newest.not_after > vault.world.now()) return { root, intermediate: newest };
    if (root.is_external === 1) throw await intermediateExpired(vault, issuerId, newest ?? root);
    const reason =
      newest === undefined ? 'needs an intermediate with other constraints' : 'needs a new intermediate';
    throw await rootKeyMissing(vault, issuerId, reason);
  }
  const issuer = { ...authority(vault, root), notAfter: root.not_after };
  const draft = await draftIntermediate(vault, settings, issuer, notAfter);
  const intermediate = await vault.db.write(async (writer) => {
    // The CA may have got another root meanwhile.
    if ((await findRoot(writer, issuerId))?.id !== root.id) return undefined;
    return insertAuthority(vault, writer, issuerId, draft, { signer_id: root.id });
  });
  if (intermediate === undefined) return intermediateUntil(vault, issuerId, settings, notAfter);
  return { root, intermediate };
}

/**
 * An intermediate that the root signed; it is valid for five years, or until `notAfter`, but no longer than the root.
 */
export async function draftIntermediate(
  vault: WorldContext,
  settings: CaSettings,
  root: X509Issuer & { readonly notAfter: number },
  notAfter = 0,
): Promise<AuthorityDraft> {
  const now = vault.world.now();
  const usual = validity(now, intermediateLifetime);
  const dates = {
    not_before: usual.not_before,
    not_after: Math.min(Math.max(usual.not_after, notAfter), root.notAfter),
  };
  // It signs each certificate, which takes twenty times as long with P-384.
  const privateKey = await generatePrivateKey('ec256');
  const certificate = await issueIntermediate({
    commonName: intermediateName(vault, settings),
    publicKey: publicKeyOf(privateKey),
    serial: vault.world.randomBytes(serialSize),
    ...issued(dates),
    issuer: root,
    ...authorityLimits(settings, settings.pathLength - 1),
  });
  const constraints = constraintsText(settings);
  const row = { role: 'intermediate' as const, certificate, constraints, ...dates };
  return { row: { ...row, created_at: now }, privateKey };
}

/** The common name of a new intermediate. */
export function intermediateName(vault: WorldContext, { commonName }: CaSettings): string {
  return `${commonName ?? 'Certificate Vault'} Intermediate ${label(vault)}`;
}

/** Tells the CA certificates of one name apart. */
function label({ world }: WorldContext): string {
  return world.randomBytes(4).toString('hex');
}

/** Where a CA certificate stands among the others of its CA. */
export type AuthorityPlace = Partial<
  Pick<CaCertificateRow, 'signer_id' | 'generation' | 'upper_chain' | 'is_external'>
>;

/** Stores a CA certificate and its sealed key. */
export async function insertAuthority(
  vault: SealingContext,
  writer: Writer,
  issuerId: number,
  { row, privateKey }: AuthorityDraft,
  place: AuthorityPlace = {},
): Promise<CaCertificateRow> {
  const empty = Buffer.alloc(0);
  const id = await insertCaCertificate(writer, {
    ...row,
    ...place,
    issuer_id: issuerId,
    sealed_private_key: empty,
  });
  await setCaPrivateKey(writer, id, await sealFor(vault, writer, authorityKeyOwner(id), privateKey));
  const stored = await findCaCertificateById(writer, id);
  if (stored === undefined) throw new Error('the CA certificate that was stored is missing');
  return stored;
}

/** Stores the root and the intermediate of a new private CA. */
export async function insertAuthorities(
  vault: SealingContext,
  writer: Writer,
  issuerId: number,
  { root, intermediate }: { readonly root: AuthorityDraft; readonly intermediate: AuthorityDraft },
  place: AuthorityPlace = {},
): Promise<void> {
  const { id } = await insertAuthority(vault, writer, issuerId, root, place);
  await insertAuthority(vault, writer, issuerId, intermediate, { signer_id: id });
}

/** Whether the vault holds the key of a CA certificate. An exported key of a root is elsewhere. */
export function holdsKey({
  sealed_private_key: sealed,
}: Pick<CaCertificateRow, 'sealed_private_key'>): boolean {
  return sealed.length > 0;
}

function authorityKey(vault: KeyringContext, row: CaCertificateRow): Secret {
  return openFor(vault, authorityKeyOwner(row.id), row.sealed_private_key);
}

/** A CA certificate with its key, which signs certificates and CRLs. */
export function authority(vault: KeyringContext, row: CaCertificateRow): X509Issuer {
  return { certificate: row.certificate, privateKey: authorityKey(vault, row) };
}

/** Validity in whole seconds for X.509, starting a little before `now`, but at most a twentieth of the lifetime. */
export function validity(now: number, lifetime: number): { not_before: number; not_after: number } {
  const begin = Math.floor((now - Math.min(backdating, lifetime / 20)) / 1000) * 1000;
  return { not_before: begin, not_after: begin + lifetime };
}

/** Dates of a row as a certificate has them. */
export function issued(dates: { not_before: number; not_after: number }): {
  notBefore: number;
  notAfter: number;
} {
  return { notBefore: dates.not_before, notAfter: dates.not_after };
}
