/**
 * The ACME account of an issuer. It is registered on first use; its key is stored before the request, so that after a
 * crash the same account is found again.
 */
import { findAccount, registerAccount, updateContact } from '../../acme/accounts.ts';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import type { AcmeAccount, ExternalAccount } from '../../acme/acme-types.ts';
import { hour } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { sameSecrets } from '../../crypto/secrets/constant-time.ts';
import type { Writer } from '../../db/database.ts';
import {
  type AcmeAccountRow,
  findAcmeAccount,
  updateAcmeAccount,
} from '../../db/tables/issuance/acme-accounts.ts';
import {
  type AcmeIssuerRow,
  findAcmeIssuer,
  type IssuerRow,
  updateAcmeIssuer,
} from '../../db/tables/issuance/issuers.ts';
import { record, system } from '../audit/audit.ts';
import type {
  DatabaseContext,
  KeyringContext,
  LogContext,
  SealingContext,
  SecretsContext,
} from '../contexts.ts';
import type { AccountContext } from '../issuance-contexts.ts';
import {
  accountKeyOwner,
  externalAccountKeyOwner,
  nextAccountKeyOwner,
  openFor,
  sealFor,
} from '../sealed-secrets.ts';
import { chosenAccount } from './acme-account-choice.ts';

/** An account with its key, and its id in the vault. */
export type OwnAccount = AcmeAccount & { readonly id: number };

/** The issuer's CA. Throws OperatorError if the issuer is not an ACME CA. */
export async function requireAcmeIssuer({ db }: DatabaseContext, issuer: IssuerRow): Promise<AcmeIssuerRow> {
  const row = await findAcmeIssuer(db.reader, issuer.id);
  if (row !== undefined) return row;
  throw new OperatorError(`issuer ${issuer.name} is not an ACME CA`);
}

/**
 * The issuer's account with the issuer's contact; registers one if there is none. Runs one at a time per issuer, so
 * that a hundred concurrent renewals register once. Throws AcmeError.
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
      await syncContact(vault, client, settled, ca, signal);
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
      record(writer, event, vault.world.now());
    });
    return { id: row.id, url: registered.url, privateKey };
  });
}

/**
 * Whether an error means that the account is unusable: the CA does not know the account or its key, or the account is
 * deactivated. Queries the CA if the error alone is not conclusive.
 */
export async function unusableStatus(
  client: AcmeClient,
  { privateKey }: OwnAccount,
  refusal: AcmeError,
  signal: AbortSignal,
): Promise<'gone' | 'deactivated' | undefined> {
  if (refusal.type === 'accountDoesNotExist') return 'gone';
  // These errors may mean a deactivated account or a wrong key. Failed challenges have no HTTP status.
  if (!['unauthorized', 'malformed'].includes(refusal.type) || refusal.status === undefined) return undefined;
  try {
    const found = await findAccount(client, privateKey, signal);
    if (found === undefined) return 'gone';
    return found.status === 'valid' ? undefined : 'deactivated';
  } catch (error) {
    // Report the original error instead of this one.
    return error instanceof AcmeError && error.type === 'unauthorized' ? 'deactivated' : undefined;
  }
}

/** Marks an account as unusable; the next use registers a new one. */
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

/** The account's key and URL. Throws OperatorError if it was never registered. */
export function ownAccount(vault: KeyringContext, row: AcmeAccountRow): OwnAccount {
  if (row.account_url === null) throw new OperatorError(`ACME account ${row.id} was never registered`);
  return {
    id: row.id,
    url: row.account_url,
    privateKey: accountKey(vault, row),
  };
}

/**
 * Whether the key of the account changed since it was opened, so that its signatures are invalid. Queries the CA if a
 * rollover may be running.
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
    // Report the original error instead of this one.
    if (error instanceof AcmeError) return false;
    throw error;
  }
}

/**
 * A rollover that started less than this ago may still reach the CA from some process. Its key is kept that long,
 * because dropping it could lose the account.
 */
const rolloverTimeout = hour;

/**
 * Settles an unfinished rollover and returns the row with the key that the CA has. If the CA knows the new key, it
 * becomes the account's key. If not, it is dropped after an hour; until then both keys stay and the row is returned
 * unchanged.
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
  if (known === undefined && age >= 0 && age < rolloverTimeout) return row;
  const key = known === undefined ? accountKey(vault, row) : next;
  return vault.db.write(async (writer) => {
    const now = await findAcmeAccount(writer, row.id);
    // Another rollover may have finished or started meanwhile.
    const sealed = now?.sealed_next_private_key ?? null;
    // Compare keys, not blobs, because a rotation of the master key seals them again.
    const isStillNext = sealed !== null && sameSecrets(openFor(vault, owner, sealed), next);
    return isStillNext ? adoptKey(vault, writer, row, key) : (now ?? row);
  });
}

/** Stores `key` as the account's key and ends the rollover. */
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

/** Updates the contact at the CA if the issuer's contact changed. */
async function syncContact(
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
    // A rejected contact must not stop renewals.
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
