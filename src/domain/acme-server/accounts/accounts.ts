/** Accounts of ACME clients (RFC 8555 §7.3): created with a binding, found by their key, updated and deactivated. */
import { z } from 'zod';
import { hour } from '../../../base/duration.ts';
import { requireIntegrity } from '../../../base/integrity.ts';
import { toJson } from '../../../base/json.ts';
import { clientAccountFits, clientAccountTag } from '../../../db/audit/account-tags.ts';
import type { Recorded } from '../../../db/audit/row-records.ts';
import type { Writer } from '../../../db/database.ts';
import {
  type AcmeClientAccountRow,
  findClientAccount,
  findClientAccountByKey,
  hasMoreAccounts,
  insertClientAccount,
  updateClientAccount,
} from '../../../db/tables/acme-server/acme-client-accounts.ts';
import { type Actor, record } from '../../audit/audit.ts';
import type { KeyringContext, LogContext, TimedContext } from '../../contexts.ts';
import type { AcmeServer } from '../acme-server.ts';
import type { AcmeClient } from '../clients/client-access.ts';
import { type AccountKey, readAccountKey } from '../protocol/account-keys.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import {
  type AcmeCaller,
  actorOf,
  ClientRefused,
  isUnmodified,
  requireAccess,
  requireClientOf,
  type SignedRequest,
  type UseContext,
} from './callers.ts';
import { readContacts } from './contacts.ts';
import { boundClient } from './external-binding.ts';

const contact = z.array(z.string().max(1000)).max(100);

export const newAccountInput = z.object({
  contact: contact.default([]),
  termsOfServiceAgreed: z.boolean().optional(),
  onlyReturnExisting: z.boolean().default(false),
  externalAccountBinding: z.unknown().optional(),
});

export const accountUpdateInput = z.object({
  contact: contact.optional(),
  termsOfServiceAgreed: z.boolean().optional(),
  status: z.literal('deactivated', 'the status of an account can only be set to "deactivated"').optional(),
});

/** An account as its owner sees it. */
export type ShownAccount = Pick<AcmeClientAccountRow, 'id' | 'status' | 'contacts'>;

type AccountContext = TimedContext & KeyringContext & LogContext & UseContext;

/** An account, its client, also in the audit log, and whether the request created it. */
export type RequestedAccount = Pick<AcmeCaller, 'account' | 'client' | 'actor'> & { readonly isNew: boolean };

/**
 * The account with the key of the request, or a new one that its binding gives to a client. Throws
 * `accountDoesNotExist` if only an existing one is asked for, `malformed` without the consent to the terms of service,
 * `externalAccountRequired` without a binding, and the problems of keys, bindings, clients and contacts. `admit` throws
 * if the client may create no account now.
 */
export async function requestAccount(
  vault: AccountContext,
  { keys, termsOfService }: Pick<AcmeServer, 'keys' | 'termsOfService'>,
  request: SignedRequest,
  input: z.infer<typeof newAccountInput>,
  admit: (client: AcmeClient) => void,
): Promise<RequestedAccount> {
  const { message, issuer } = request;
  const key = readAccountKey(message.header.jwk);
  await keys.requireSignature(message, key);
  const existing = await findClientAccountByKey(vault.db.reader, issuer.id, key.thumbprint);
  if (existing !== undefined) return foundAccount(vault, request, existing);
  if (input.onlyReturnExisting) {
    throw new AcmeProblem('accountDoesNotExist', 'There is no account with this key.');
  }
  if (termsOfService !== undefined && input.termsOfServiceAgreed !== true) {
    throw new AcmeProblem(
      'malformed',
      `A new account must agree to the terms of service at ${termsOfService}: termsOfServiceAgreed must be true.`,
    );
  }
  if (input.externalAccountBinding === undefined) {
    throw new AcmeProblem(
      'externalAccountRequired',
      'A new account needs an external account binding: the kid and the HMAC key that "vault acme-client create" prints.',
    );
  }
  return createAccount(vault, request, key, input, admit);
}

async function foundAccount(
  vault: AccountContext,
  request: SignedRequest,
  account: AcmeClientAccountRow & Recorded,
): Promise<RequestedAccount> {
  if (!isUnmodified(vault, account))
    throw new AcmeProblem('unauthorized', 'The account with this key is not valid.');
  const client = await requireClientOf(vault, request, account);
  return { account, client, actor: actorOf(client, request), isNew: false };
}

async function createAccount(
  vault: AccountContext,
  request: SignedRequest,
  { jwk, thumbprint }: AccountKey,
  { contact: contacts, externalAccountBinding: binding }: z.infer<typeof newAccountInput>,
  admit: (client: AcmeClient) => void,
): Promise<RequestedAccount> {
  const { issuer, message, nonce } = request;
  const client = await boundClient(vault, { binding, url: message.header.url, thumbprint });
  requireAccess(vault, request, client);
  const actor = actorOf(client, request);
  admit(client);
  const now = vault.world.now();
  const row = {
    acme_client_id: client.id,
    issuer_id: issuer.id,
    thumbprint,
    jwk: toJson(jwk),
    contacts: toJson(readContacts(contacts)),
    status: 'valid' as const,
    created_at: now,
  };
  const id = await vault.db.write(async (writer) => {
    await storeNonce(writer, nonce);
    const added = await insertClientAccount(writer, row);
    if (added !== undefined) {
      await refuseTooManyAccounts(writer, client, actor);
      await storeAccount(writer, { id: added, ...row });
      const detail = { account: added, issuer: issuer.name, thumbprint };
      record(
        writer,
        { actor, action: 'acme_client.account_create', resource: resourceOf(client), detail },
        now,
      );
    }
    return added;
  });
  if (id !== undefined) return { account: { id, ...row, tag: null }, client, actor, isNew: true };
  // Another request with the same key was faster.
  const other = await findClientAccountByKey(vault.db.reader, issuer.id, thumbprint);
  if (other === undefined) throw new Error('the account vanished');
  return foundAccount(vault, request, other);
}

/**
 * Accounts of a client. Deactivated ones count, because they are kept: their keys must not be used again, and a client
 * that creates and deactivates accounts in a loop adds as many rows as one that only creates them.
 */
export const maxAccounts = 10_000;

/** A client that obeys does not create accounts in a loop. */
const pauseWithAccounts = hour;

/** Throws ClientRefused if the client has more accounts than it may have, with the one that was just added. */
async function refuseTooManyAccounts(writer: Writer, client: AcmeClient, actor: Actor): Promise<void> {
  const { id, name } = client;
  if (!(await hasMoreAccounts(writer, id, maxAccounts))) return;
  const problem = new AcmeProblem(
    'rateLimited',
    `ACME client ${id} (${name}) has ${maxAccounts} accounts, deactivated ones included, and may have no more. Let programs keep the keys of their accounts, and create another client with "vault acme-client create".`,
    { retryAfterMs: pauseWithAccounts },
  );
  throw new ClientRefused(problem, client, actor);
}

/** Replaces the contacts of an account, or deactivates it (§7.3.2, §7.3.6). Returns it as it is afterwards. */
export async function updateAccount(
  vault: TimedContext,
  { account, client, actor, nonce }: AcmeCaller,
  { contact: written, status }: z.infer<typeof accountUpdateInput>,
): Promise<AcmeClientAccountRow> {
  const contacts = written === undefined ? account.contacts : toJson(readContacts(written));
  if (contacts === account.contacts && status === undefined) return account;
  return vault.db.write(async (writer) => {
    await storeNonce(writer, nonce);
    const current = await requireAccount(writer, account.id);
    const changed = { ...current, contacts, status: status ?? current.status };
    await storeAccount(writer, changed);
    const action = status === 'deactivated' ? 'acme_client.account_deactivate' : 'acme_client.account_update';
    const detail = { account: account.id };
    record(writer, { actor, action, resource: resourceOf(client), detail }, vault.world.now());
    return changed;
  });
}

/** The account as it is in this transaction. Throws `unauthorized` unless it is valid and as the vault wrote it. */
export async function requireAccount(writer: Writer, id: number): Promise<AcmeClientAccountRow> {
  const account = await findClientAccount(writer, id);
  if (account?.status === 'valid' && clientAccountFits(requireIntegrity(writer), account)) return account;
  throw new AcmeProblem('unauthorized', 'The account is no longer valid.', { status: 401 });
}

/** Stores the account with a tag of what it is now. */
export async function storeAccount(
  writer: Writer,
  account: Omit<AcmeClientAccountRow, 'tag'>,
): Promise<void> {
  const { id, thumbprint, jwk, contacts, status } = account;
  const tag = clientAccountTag(writer, account);
  await updateClientAccount(writer, id, { thumbprint, jwk, contacts, status, tag });
}

/** The client of an account in the audit log. */
export function resourceOf({ id }: { readonly id: number }): string {
  return `acme-client:${id}`;
}
