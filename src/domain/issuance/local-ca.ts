/**
 * The built-in private CA: a root and an intermediate made at the first start, so that a vault is useful with no
 * network at all. The root signs intermediates only; a new intermediate is made when the last one ends too early.
 */
import { day, minute } from '../../base/duration.ts';
import type { Identifier } from '../../base/identifier.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey, publicKeyOf } from '../../crypto/key-pair.ts';
import { encodePem } from '../../crypto/pem.ts';
import { issueIntermediate, issueLeaf, issueRoot } from '../../crypto/x509-issuance.ts';
import type { Writer } from '../../db/database.ts';
import {
  type CaCertificateRow,
  findCaCertificate,
  insertCaCertificate,
  setCaPrivateKey,
} from '../../db/tables/ca-certificates.ts';
import { findIssuer, type IssuerRow, insertIssuer } from '../../db/tables/issuers.ts';
import { record, system } from '../audit/audit.ts';
import type {
  DatabaseContext,
  KeyringContext,
  SealingContext,
  SecretsContext,
  WorldContext,
} from '../contexts.ts';
import { authorityKeyOwner, openFor, sealFor } from '../sealed-secrets.ts';

export const localCaName = 'local-ca';

const rootLifetime = 3650 * day;
const intermediateLifetime = 5 * 365 * day;
/** Certificates begin a little in the past, for clients whose clock is behind. */
const backdating = 5 * minute;
const serialSize = 16;
const defaultLifetime = 90 * day;

type Authority = { readonly row: CaCertificateRow; readonly privateKey: Secret };
type Draft = { readonly row: Omit<CaCertificateRow, 'id' | 'issuer_id'>; readonly privateKey: Secret };

/** Makes the issuer with its root and intermediate unless it is there; of two processes that try, one does. */
export async function ensureLocalCa(vault: SecretsContext): Promise<void> {
  if ((await findIssuer(vault.db.reader, localCaName)) !== undefined) return;
  const now = vault.world.now();
  const label = vault.world.randomBytes(4).toString('hex');
  const rootKey = await generatePrivateKey('ec384');
  const rootRow = {
    role: 'root' as const,
    ...validity(now, rootLifetime),
    certificate: await issueRoot({
      commonName: `Certificate Vault Root ${label}`,
      privateKey: rootKey,
      serial: vault.world.randomBytes(serialSize),
      ...issued(validity(now, rootLifetime)),
    }),
    sealed_private_key: Buffer.alloc(0),
    created_at: now,
  };
  const intermediate = await draftIntermediate(vault, {
    certificate: rootRow.certificate,
    privateKey: rootKey,
    notAfter: rootRow.not_after,
  });
  await vault.db.write(async (writer) => {
    if ((await findIssuer(writer, localCaName)) !== undefined) return;
    const issuerId = await insertIssuer(writer, { name: localCaName, type: 'local-ca', created_at: now });
    await insertAuthority(vault, writer, issuerId, { row: rootRow, privateKey: rootKey });
    await insertAuthority(vault, writer, issuerId, intermediate);
    await record(writer, { actor: system, action: 'issuer.create', resource: `issuer:${localCaName}` }, now);
  });
}

/** The root's PEM, for clients to trust. */
export async function rootPem({ db }: DatabaseContext): Promise<string> {
  const issuer = await localCa(db.reader);
  const root = await findCaCertificate(db.reader, issuer.id, 'root');
  if (root === undefined) throw new Error('the private CA has no root');
  return encodePem('CERTIFICATE', root.certificate);
}

export type IssuedCertificate = { readonly leaf: Buffer; readonly chain: Buffer[] };

/**
 * Signs a certificate for the key: leaf and intermediate as DER. `lifetime` is in milliseconds, 90 days where
 * undefined; it ends no later than the root does.
 */
export async function issueFromLocalCa(
  vault: SecretsContext,
  request: { identifiers: readonly Identifier[]; privateKey: Secret; lifetime: number | undefined },
): Promise<IssuedCertificate> {
  const now = vault.world.now();
  const asked = validity(now, request.lifetime ?? defaultLifetime);
  const intermediate = await intermediateUntil(vault, asked.not_after);
  const notAfter = Math.min(asked.not_after, intermediate.row.not_after);
  if (notAfter <= now) {
    throw new OperatorError('the private CA has expired', {
      hint: 'Its root is valid for ten years; import a certificate of another CA, or begin a new vault.',
    });
  }
  const leaf = await issueLeaf({
    identifiers: [...request.identifiers],
    publicKey: publicKeyOf(request.privateKey),
    serial: vault.world.randomBytes(serialSize),
    notBefore: asked.not_before,
    notAfter,
    issuer: { certificate: intermediate.row.certificate, privateKey: intermediate.privateKey },
  });
  return { leaf, chain: [intermediate.row.certificate] };
}

/** The newest intermediate, or a new one where it ends before `notAfter` and the root allows for longer. */
async function intermediateUntil(vault: SecretsContext, notAfter: number): Promise<Authority> {
  const { id } = await localCa(vault.db.reader);
  const newest = await findCaCertificate(vault.db.reader, id, 'intermediate');
  const root = await findCaCertificate(vault.db.reader, id, 'root');
  if (newest === undefined || root === undefined) throw new Error('the private CA is incomplete');
  const enough = newest.not_after >= notAfter || newest.not_after >= root.not_after;
  if (enough) return { row: newest, privateKey: authorityKey(vault, newest) };
  const draft = await draftIntermediate(
    vault,
    { certificate: root.certificate, privateKey: authorityKey(vault, root), notAfter: root.not_after },
    notAfter,
  );
  return vault.db.write(async (writer) => {
    const row = await insertAuthority(vault, writer, id, draft);
    return { row, privateKey: draft.privateKey };
  });
}

async function draftIntermediate(
  vault: WorldContext,
  root: { certificate: Buffer; privateKey: Secret; notAfter: number },
  notAfter = 0,
): Promise<Draft> {
  const now = vault.world.now();
  const usual = validity(now, intermediateLifetime);
  const dates = {
    not_before: usual.not_before,
    not_after: Math.min(Math.max(usual.not_after, notAfter), root.notAfter),
  };
  const privateKey = await generatePrivateKey('ec384');
  const certificate = await issueIntermediate({
    commonName: `Certificate Vault Intermediate ${vault.world.randomBytes(4).toString('hex')}`,
    publicKey: publicKeyOf(privateKey),
    serial: vault.world.randomBytes(serialSize),
    ...issued(dates),
    issuer: root,
  });
  const row = { role: 'intermediate' as const, certificate, ...dates };
  return { row: { ...row, sealed_private_key: Buffer.alloc(0), created_at: now }, privateKey };
}

async function insertAuthority(
  vault: SealingContext,
  writer: Writer,
  issuerId: number,
  { row, privateKey }: Draft,
): Promise<CaCertificateRow> {
  const id = await insertCaCertificate(writer, { ...row, issuer_id: issuerId });
  const sealed = await sealFor(vault, writer, authorityKeyOwner(id), privateKey);
  await setCaPrivateKey(writer, id, sealed);
  return { ...row, id, issuer_id: issuerId, sealed_private_key: sealed };
}

function authorityKey(vault: KeyringContext, row: CaCertificateRow): Secret {
  return openFor(vault, authorityKeyOwner(row.id), row.sealed_private_key);
}

async function localCa(reader: Parameters<typeof findIssuer>[0]): Promise<IssuerRow> {
  const issuer = await findIssuer(reader, localCaName);
  if (issuer === undefined) throw new Error('the private CA was not made');
  return issuer;
}

/** Whole seconds, as X.509 has them: `lifetime` from a little before `now`, or a twentieth of it where it is short. */
function validity(now: number, lifetime: number): { not_before: number; not_after: number } {
  const begin = Math.floor((now - Math.min(backdating, lifetime / 20)) / 1000) * 1000;
  return { not_before: begin, not_after: begin + lifetime };
}

function issued(dates: { not_before: number; not_after: number }): { notBefore: number; notAfter: number } {
  return { notBefore: dates.not_before, notAfter: dates.not_after };
}
