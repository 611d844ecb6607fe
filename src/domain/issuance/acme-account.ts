/**
 * The account at a CA that an issuer orders with: registered on first use, its key stored before the CA hears of it, so
 * that a crash in between finds the same account again.
 */
import { findAccount, registerAccount, updateContact } from '../../acme/accounts.ts';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import type { AcmeAccount, ExternalAccount } from '../../acme/acme-types.ts';
import { hour } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { sameSecrets } from '../../crypto/constant-time.ts';
import type { Writer } from '../../db/database.ts';
import { type AcmeAccountRow, findAcmeAccount, updateAcmeAccount } from '../../db/tables/acme-accounts.ts';
import {
  type AcmeIssuerRow,
  findAcmeIssuer,
  type IssuerRow,
  updateAcmeIssuer,
} from '../../db/tables/issuers.ts';
import { record, system } from '../audit/audit.ts';
import type {
  DatabaseContext,
  KeyringContext,
  LogContext,
  SealingContext,
  SecretsContext,
} from '../contexts.ts';
import {
  accountKeyOwner,
  externalAccountKeyOwner,
  nextAccountKeyOwner,
  openFor,
  sealFor,
} from '../sealed-secrets.ts';
import { chosenAccount } from './acme-account-choice.ts';
import type { AccountContext } from './issuance-contexts.ts';

/** An account that can sign, with its id in the vault. */
export type OwnAccount = AcmeAccount & { readonly id: number };

/** The issuer's CA. Throws where the issuer is none of ACME. */
export async function requireAcmeIssuer({ db }: DatabaseContext, issuer: IssuerRow): Promise<AcmeIssuerRow> {
  const row = await findAcmeIssuer(db.reader, issuer.id);
  if (row !== undefined) return row;
  throw new OperatorError(`the issuer ${issuer.name} is not an ACME CA`);
}

/**
 * The issuer's account, registered now where there is none, with the issuer's contact. One at a time per issuer: a
 * hundred renewals that begin together register once. Throws AcmeError.
 */
export async function ensureAccount(
  vault: AccountContext,
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
    return { id: row.id, url: registered.url, privateKey };
  });
}

/**
 * Whether a refusal means that the account is of no use any more: the CA does not know it or its key, or it was closed
 * there. Asks the CA where the refusal alone does not tell.
 */
export async function lossOf(
  client: AcmeClient,
  { privateKey }: OwnAccount,
  refusal: AcmeError,
  signal: AbortSignal,
): Promise<'gone' | 'deactivated' | undefined> {
  if (refusal.type === 'accountDoesNotExist') return 'gone';
  // Of a closed account, or a key that is not the account's; challenges that fail have no status of their own.
  if (!['unauthorized', 'malformed'].includes(refusal.type) || refusal.status === undefined) return undefined;
  try {
    const found = await findAccount(client, privateKey, signal);
    if (found === undefined) return 'gone';
    return found.status === 'valid' ? undefined : 'deactivated';
  } catch (error) {
    // The refusal tells more than what else went wrong.
    return error instanceof AcmeError && error.type === 'unauthorized' ? 'deactivated' : undefined;
  }
}

/** Forgets an account that is of no use any more; the next use registers another. */
export async function forgetAccount(
  { db }: DatabaseContext,
  issuer: IssuerRow,
  accountId: number,
  status: 'gone' | 'deactivated',
): Promise<void> {
  await db.write(async (writer) => {
    await updateAcmeAccount(writer, accountId, { status });
    const ca = await findAcmeIssuer(writer, issuer.id);
    if (ca?.account_id === accountId) await updateAcmeIssuer(writer, issuer.id, { account_id: null });
  });
}

/** The account's key and URL. Throws where it was never registered. */
export function ownAccount(vault: KeyringContext, row: AcmeAccountRow): OwnAccount {
  if (row.account_url === null) throw new OperatorError(`the ACME account ${row.id} was never registered`);
  return {
    id: row.id,
    url: row.account_url,
    privateKey: accountKey(vault, row),
  };
}

/**
 * Whether the account got another key since it was opened, so that its signatures do not count any more. Where a rollover
 * may be under way the CA is asked.
 */
export async function hasOtherKey(
  vault: SecretsContext,
  client: AcmeClient,
  { id, privateKey }: OwnAccount,
  signal: AbortSignal,
): Promise<boolean> {
  const row = await findAcmeAccount(vault.db.reader, id);
  if (row === undefined) return false;
  try {
    const settled = await settleRollover(vault, client, row, signal);
    return !sameSecrets(accountKey(vault, settled), privateKey);
  } catch (error) {
    // What went wrong before tells more than that the CA could not be asked.
    if (error instanceof AcmeError) return false;
    throw error;
  }
}

/**
 * A rollover that began less than this ago may still reach the CA, from whichever process: its key is not dropped before,
 * or an answer that is lost would take the account with it.
 */
const rolloverPatience = hour;

/**
 * The row with the key that the CA knows the account by, where a rollover is under way or was cut off: the CA is asked,
 * and the new key is stored as the account's once the CA has it. Where the CA does not have it, it is dropped only after
 * an hour; until then both stay, and the row is returned as it is.
 */
export async function settleRollover(
  vault: SecretsContext,
  client: AcmeClient,
  row: AcmeAccountRow,
  signal: AbortSignal,
): Promise<AcmeAccountRow> {
  if (row.sealed_next_private_key === null) return row;
  const owner = nextAccountKeyOwner(row.id);
  const next = openFor(vault, owner, row.sealed_next_private_key);
  const known = await findAccount(client, next, signal);
  const age = vault.world.now() - (row.rollover_at ?? 0);
  if (known === undefined && age >= 0 && age < rolloverPatience) return row;
  const key = known === undefined ? accountKey(vault, row) : next;
  return vault.db.write(async (writer) => {
    const now = await findAcmeAccount(writer, row.id);
    // Whoever changes the key may have ended it since, or begun again.
    const sealed = now?.sealed_next_private_key ?? null;
    // Keys are compared, not blobs: a new master key seals the same ones anew.
    const isStillNext = sealed !== null && sameSecrets(openFor(vault, owner, sealed), next);
    return isStillNext ? adoptKey(vault, writer, row, key) : (now ?? row);
  });
}

/** Makes `key` the account's key and forgets the one it was changing to. */
export async function adoptKey(
  vault: SealingContext,
  writer: Writer,
  row: AcmeAccountRow,
  key: Secret,
): Promise<AcmeAccountRow> {
  const changes = {
    sealed_private_key: await sealFor(vault, writer, accountKeyOwner(row.id), key),
    sealed_next_private_key: null,
    rollover_at: null,
  };
  await updateAcmeAccount(writer, row.id, changes);
  return { ...row, ...changes };
}

/** Tells the CA where to write to, once the issuer's contact is another than the account's. */
async function followContact(
  vault: DatabaseContext & KeyringContext & LogContext,
  client: AcmeClient,
  row: AcmeAccountRow,
  ca: AcmeIssuerRow,
  signal: AbortSignal,
): Promise<void> {
  if (row.email === ca.email) return;
  try {
    await updateContact(client, ownAccount(vault, row), ca.email ?? undefined, signal);
  } catch (error) {
    // An address that the CA does not like is no reason for certificates to expire.
    if (!(error instanceof AcmeError) || error.kind !== 'problem') throw error;
    vault.log.warn(
      { err: error, account: row.id },
      'the CA rejected the new contact; retrying with the next renewal',
    );
    return;
  }
  await vault.db.write((writer) => updateAcmeAccount(writer, row.id, { email: ca.email }));
}

function accountKey(vault: KeyringContext, row: AcmeAccountRow): Secret {
  return openFor(vault, accountKeyOwner(row.id), row.sealed_private_key);
}

function externalAccount(vault: KeyringContext, ca: AcmeIssuerRow): ExternalAccount | undefined {
  if (ca.eab_kid === null || ca.sealed_eab_key === null) return undefined;
  const hmacKey = openFor(vault, externalAccountKeyOwner(ca.issuer_id), ca.sealed_eab_key);
  return { kid: ca.eab_kid, hmacKey };
}
