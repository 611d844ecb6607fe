/** Chooses the ACME account of an issuer: one per directory, contact and external account (EAB). */
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AcmeAccountRow,
  findAcmeAccount,
  insertAcmeAccount,
  issuersOfAcmeAccount,
  listUsableAccounts,
  updateAcmeAccount,
} from '../../db/tables/issuance/acme-accounts.ts';
import { type AcmeIssuerRow, type IssuerRow, updateAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext, SealingContext, SecretsContext } from '../contexts.ts';
import { accountKeyOwner, sealFor } from '../sealed-secrets.ts';

/** The issuer's account, or one with the same directory, contact and EAB key id, or a new one. */
export async function chosenAccount(
  vault: SecretsContext,
  issuer: IssuerRow,
  ca: AcmeIssuerRow,
): Promise<AcmeAccountRow> {
  const current = ca.account_id === null ? undefined : await findAcmeAccount(vault.db.reader, ca.account_id);
  if (current !== undefined && isUsable(current, ca) && (await suits(vault, current, ca))) return current;
  const privateKey = await generatePrivateKey('ec256');
  return vault.db.write(async (writer) => {
    const usable = await listUsableAccounts(writer, ca.directory_url);
    const shared = usable.find((row) => row.email === ca.email && row.eab_kid === ca.eab_kid);
    const row = shared ?? (await insertAccount(vault, writer, issuer, ca, privateKey));
    await updateAcmeIssuer(writer, issuer.id, { account_id: row.id });
    return row;
  });
}

function isUsable(row: AcmeAccountRow, ca: AcmeIssuerRow): boolean {
  const isAlive = row.status === 'valid' || row.status === 'registering';
  return isAlive && row.directory_url === ca.directory_url && row.eab_kid === ca.eab_kid;
}

/** An account shared by several issuers keeps its contact, so a different contact needs another account. */
async function suits({ db }: DatabaseContext, row: AcmeAccountRow, ca: AcmeIssuerRow): Promise<boolean> {
  return row.email === ca.email || (await issuersOfAcmeAccount(db.reader, row.id)).length < 2;
}

async function insertAccount(
  vault: SealingContext,
  writer: Writer,
  issuer: IssuerRow,
  ca: AcmeIssuerRow,
  privateKey: Secret,
): Promise<AcmeAccountRow> {
  const row = {
    issuer: issuer.name,
    directory_url: ca.directory_url,
    account_url: null,
    email: ca.email,
    eab_kid: ca.eab_kid,
    status: 'registering' as const,
    sealed_private_key: Buffer.alloc(0),
    sealed_next_private_key: null,
    rollover_at: null,
    created_at: vault.world.now(),
  };
  const id = await insertAcmeAccount(writer, row);
  // The seal is bound to the row's id, which is known only now.
  const sealed = await sealFor(vault, writer, accountKeyOwner(id), privateKey);
  await updateAcmeAccount(writer, id, { sealed_private_key: sealed });
  return { ...row, id, sealed_private_key: sealed };
}
