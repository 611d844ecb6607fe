/**
 * The account at a CA that an issuer orders with: registered on first use, its key stored before the CA hears of it, so
 * that a crash in between finds the same account again.
 */
import { findAccount, registerAccount, updateContact } from '../acme/accounts.ts';
import type { AcmeClient } from '../acme/acme-client.ts';
import type { AcmeAccount, ExternalAccount } from '../acme/acme-types.ts';
import { OperatorError } from '../base/operator-error.ts';
import type { Secret } from '../base/secret.ts';
import { generatePrivateKey } from '../crypto/key-pair.ts';
import {
  type AcmeAccountRow,
  findAcmeAccount,
  insertAcmeAccount,
  listUsableAccounts,
  updateAcmeAccount,
} from '../db/acme-accounts.ts';
import type { Writer } from '../db/database.ts';
import { type AcmeIssuerRow, findAcmeIssuer, type IssuerRow, updateAcmeIssuer } from '../db/issuers.ts';
import { record, system } from './audit.ts';
import {
  accountKeyOwner,
  externalAccountKeyOwner,
  nextAccountKeyOwner,
  openFor,
  sealFor,
} from './sealed-secrets.ts';
import type { Vault } from './vault.ts';

/** An account that can sign, with its id in the vault, and its key as it was stored. */
export type OwnAccount = AcmeAccount & { readonly id: number; readonly sealedKey: Buffer };

/** The issuer's CA. Throws where the issuer is none of ACME. */
export async function requireAcmeIssuer({ db }: Vault, issuer: IssuerRow): Promise<AcmeIssuerRow> {
  const row = await findAcmeIssuer(db.reader, issuer.id);
  if (row !== undefined) return row;
  throw new OperatorError(`the issuer ${issuer.name} is not an ACME CA`);
}

/**
 * The issuer's account, registered now where there is none, with the issuer's contact. One at a time per issuer: a
 * hundred renewals that begin together register once. Throws AcmeError.
 */
export async function ensureAccount(
  vault: Vault,
  issuer: IssuerRow,
  client: AcmeClient,
  signal: AbortSignal,
): Promise<OwnAccount> {
  return vault.turns.take(`account:${issuer.id}`, async () => {
    const ca = await requireAcmeIssuer(vault, issuer);
    const row = await chosenAccount(vault, issuer, ca);
    if (row.status === 'valid' && row.account_url !== null) {
      const settled = await settleRollover(vault, client, row, signal);
      await followContact(vault, client, settled, ca, signal);
      return ownAccount(vault, settled);
    }
    const privateKey = accountKey(vault, row);
    const registered = await registerAccount(
      client,
      {
        privateKey,
        email: ca.email ?? undefined,
        externalAccount: externalAccount(vault, ca),
        termsAgreed: ca.terms_of_service !== null,
      },
      signal,
    );
    await vault.db.write(async (writer) => {
      const changes = { account_url: registered.url, status: 'valid' as const, email: ca.email };
      await updateAcmeAccount(writer, row.id, changes);
      const detail = { issuer: issuer.name, directory_url: ca.directory_url, account_url: registered.url };
      const resource = `acme-account:${row.id}`;
      const event = { actor: system, action: 'acme_account.register', resource, detail } as const;
      await record(writer, event, vault.world.now());
    });
    return { id: row.id, url: registered.url, privateKey, sealedKey: row.sealed_private_key };
  });
}

/** Forgets an account that the CA does not know (any more); the next use registers another. */
export async function forgetAccount({ db }: Vault, issuer: IssuerRow, accountId: number): Promise<void> {
  await db.write(async (writer) => {
    await updateAcmeAccount(writer, accountId, { status: 'gone' });
    const ca = await findAcmeIssuer(writer, issuer.id);
    if (ca?.account_id === accountId) await updateAcmeIssuer(writer, issuer.id, { account_id: null });
  });
}

/** The account's key and URL. Throws where it was never registered. */
export function ownAccount(vault: Vault, row: AcmeAccountRow): OwnAccount {
  if (row.account_url === null) throw new OperatorError(`the ACME account ${row.id} was never registered`);
  return {
    id: row.id,
    url: row.account_url,
    privateKey: accountKey(vault, row),
    sealedKey: row.sealed_private_key,
  };
}

/** Whether the account got another key, or is getting one, since it was opened: its signatures may not count any more. */
export async function hasOtherKey({ db }: Vault, { id, sealedKey }: OwnAccount): Promise<boolean> {
  const row = await findAcmeAccount(db.reader, id);
  if (row === undefined) return false;
  return row.sealed_next_private_key !== null || !row.sealed_private_key.equals(sealedKey);
}

/**
 * After a rollover that was cut off, the key that the CA knows the account by: asked once, then stored. Returns the row
 * as it is now.
 */
export async function settleRollover(
  vault: Vault,
  client: AcmeClient,
  row: AcmeAccountRow,
  signal: AbortSignal,
): Promise<AcmeAccountRow> {
  if (row.sealed_next_private_key === null) return row;
  const next = openFor(vault, nextAccountKeyOwner(row.id), row.sealed_next_private_key);
  const known = await findAccount(client, next, signal);
  const key = known === undefined ? accountKey(vault, row) : next;
  return vault.db.write((writer) => adoptKey(vault, writer, row, key));
}

/** Makes `key` the account's key and forgets the one it was changing to. */
export async function adoptKey(
  vault: Vault,
  writer: Writer,
  row: AcmeAccountRow,
  key: Secret,
): Promise<AcmeAccountRow> {
  const changes = {
    sealed_private_key: sealFor(vault, accountKeyOwner(row.id), key),
    sealed_next_private_key: null,
  };
  await updateAcmeAccount(writer, row.id, changes);
  return { ...row, ...changes };
}

/** The issuer's account, else one of the same directory, contact and customer, else a new one with its key. */
async function chosenAccount(vault: Vault, issuer: IssuerRow, ca: AcmeIssuerRow): Promise<AcmeAccountRow> {
  const current = ca.account_id === null ? undefined : await findAcmeAccount(vault.db.reader, ca.account_id);
  if (current !== undefined && isUsable(current, ca)) return current;
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

async function insertAccount(
  vault: Vault,
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
    created_at: vault.world.now(),
  };
  const id = await insertAcmeAccount(writer, row);
  // Sealed for the row's id, which is known only now.
  const sealed = sealFor(vault, accountKeyOwner(id), privateKey);
  await updateAcmeAccount(writer, id, { sealed_private_key: sealed });
  return { ...row, id, sealed_private_key: sealed };
}

/** Tells the CA where to write to, once the issuer's contact is another than the account's. */
async function followContact(
  vault: Vault,
  client: AcmeClient,
  row: AcmeAccountRow,
  ca: AcmeIssuerRow,
  signal: AbortSignal,
): Promise<void> {
  if (row.email === ca.email) return;
  await updateContact(client, ownAccount(vault, row), ca.email ?? undefined, signal);
  await vault.db.write((writer) => updateAcmeAccount(writer, row.id, { email: ca.email }));
}

function accountKey(vault: Vault, row: AcmeAccountRow): Secret {
  return openFor(vault, accountKeyOwner(row.id), row.sealed_private_key);
}

function externalAccount(vault: Vault, ca: AcmeIssuerRow): ExternalAccount | undefined {
  if (ca.eab_kid === null || ca.sealed_eab_key === null) return undefined;
  const hmacKey = openFor(vault, externalAccountKeyOwner(ca.issuer_id), ca.sealed_eab_key);
  return { kid: ca.eab_kid, hmacKey };
}
