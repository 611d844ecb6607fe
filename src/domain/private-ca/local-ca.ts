/** The built-in private CA: it is created at the first start, so that a vault is useful without a network. */
import { findIssuer, type IssuerRow, insertIssuer } from '../../db/tables/issuance/issuers.ts';
import { record, system } from '../audit/audit.ts';
import type { DatabaseContext, SecretsContext, TimedContext } from '../contexts.ts';
import { draftAuthorities, insertAuthorities } from './authorities.ts';
import { crossCertificates, pemOf, trustedRoots } from './ca-chains.ts';
import { defaultSettings } from './ca-settings.ts';
import { type CertificateWish, type IssuedCertificate, issueFromPrivateCa } from './leaf-issuance.ts';

export const localCaName = 'local-ca';

/** Creates the issuer with its root and intermediate unless it exists. Safe to call from several processes. */
export async function ensureLocalCa(vault: SecretsContext): Promise<void> {
  if ((await findIssuer(vault.db.reader, localCaName)) !== undefined) return;
  const now = vault.world.now();
  const drafted = await draftAuthorities(vault, defaultSettings);
  await vault.db.write(async (writer) => {
    if ((await findIssuer(writer, localCaName)) !== undefined) return;
    const issuerId = await insertIssuer(writer, { name: localCaName, type: 'local-ca', created_at: now });
    await insertAuthorities(vault, writer, issuerId, drafted);
    record(writer, { actor: system, action: 'issuer.create', resource: `issuer:${localCaName}` }, now);
  });
}

/** The roots of the built-in CA in PEM, for clients to trust; see `trustedRoots`. */
export async function rootPem(vault: TimedContext): Promise<string> {
  return rootPemOf(vault, await localCa(vault.db.reader));
}

/** The roots of a private CA in PEM, for clients to trust; see `trustedRoots`. */
export async function rootPemOf({ db, world }: TimedContext, { id }: Pick<IssuerRow, 'id'>): Promise<string> {
  return pemOf(await trustedRoots(db.reader, id, world.now()));
}

/**
 * The certificates that link the roots of a private CA, by default the built-in one, in PEM; empty where there was one
 * root.
 */
export async function crossPemOf({ db, world }: TimedContext, ca?: Pick<IssuerRow, 'id'>): Promise<string> {
  const { id } = ca ?? (await localCa(db.reader));
  return pemOf(await crossCertificates(db.reader, id, world.now()));
}

/** Issues a certificate from the built-in private CA. Throws like `issueFromPrivateCa`. */
export async function issueFromLocalCa(
  vault: SecretsContext,
  wish: CertificateWish,
): Promise<IssuedCertificate> {
  return issueFromPrivateCa(vault, await localCa(vault.db.reader), wish);
}

/** The private CA of this name, also the built-in one; undefined if there is none. */
export async function privateCaNamed({ db }: DatabaseContext, name: string): Promise<IssuerRow | undefined> {
  const issuer = await findIssuer(db.reader, name);
  return issuer?.type === 'acme' ? undefined : issuer;
}

/** The issuer that every vault has. */
export async function localCa(reader: Parameters<typeof findIssuer>[0]): Promise<IssuerRow> {
  const issuer = await findIssuer(reader, localCaName);
  if (issuer === undefined) throw new Error('the private CA does not exist');
  return issuer;
}
