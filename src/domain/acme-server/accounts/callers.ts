/** Who signed a request: an account, which belongs to an ACME client, at the directory of an issuer. */
import { requireIntegrity } from '../../../base/integrity.ts';
import { clientAccountFits } from '../../../db/audit/account-tags.ts';
import type { Recorded } from '../../../db/audit/row-records.ts';
import {
  type AcmeClientAccountRow,
  findClientAccount,
} from '../../../db/tables/acme-server/acme-client-accounts.ts';
import { findIssuer, type IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import type { KeyUse } from '../../access/key-use.ts';
import type { Actor } from '../../audit/audit.ts';
import type { DatabaseContext, LogContext, TimedContext, WorldContext } from '../../contexts.ts';
import { type AcmeClient, findAcmeClient, refusalOfClient } from '../clients/client-access.ts';
import { type AccountKeys, storedAccountKey } from '../protocol/account-keys.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import type { UsedNonce } from '../protocol/nonces.ts';
import type { SignedMessage } from '../protocol/signed-messages.ts';

/** A request whose URL and nonce were checked, and whose signature was not. */
export type SignedRequest = {
  readonly issuer: IssuerRow;
  readonly message: SignedMessage;
  readonly nonce: UsedNonce;
  /** Address and id of the request. */
  readonly origin: Pick<Actor, 'ip' | 'requestId'>;
};

/** The account that signed a request, and whose it is. */
export type AcmeCaller = {
  readonly issuer: IssuerRow;
  readonly account: AcmeClientAccountRow;
  readonly client: AcmeClient;
  /** In the audit log. */
  readonly actor: Actor;
  /** To be stored with what the request changes. */
  readonly nonce: UsedNonce;
};

/** A known client that may not use a directory, or do there what it asks for. */
export class ClientRefused extends AcmeProblem {
  readonly caller: Pick<AcmeCaller, 'client' | 'actor'>;

  constructor({ type, message, retryAfterMs }: AcmeProblem, client: AcmeClient, actor: Actor) {
    super(type, message, retryAfterMs === undefined ? {} : { retryAfterMs });
    this.caller = { client, actor };
  }
}

/** Notes when clients were last used. */
export type UseContext = { readonly keyUse: Pick<KeyUse, 'noteAcmeClient'> };

type CallerContext = TimedContext & LogContext & UseContext;

/** The issuer with a directory under this name; undefined if there is none. */
export function findDirectoryIssuer({ db }: DatabaseContext, name: string): Promise<IssuerRow | undefined> {
  return findIssuer(db.reader, name);
}

/**
 * The account with this id that signed a request. Throws `accountDoesNotExist` for an unknown one, what
 * `AccountKeys.requireSignature` throws, and `unauthorized` for one that was deactivated or whose client may not use
 * this directory.
 */
export async function requireCaller(
  vault: CallerContext,
  keys: AccountKeys,
  request: SignedRequest,
  accountId: number | undefined,
): Promise<AcmeCaller> {
  const { issuer, message, nonce } = request;
  const account = accountId === undefined ? undefined : await findClientAccount(vault.db.reader, accountId);
  if (account === undefined || account.issuer_id !== issuer.id || !isUnmodified(vault, account)) {
    throw new AcmeProblem('accountDoesNotExist', 'There is no account with the URL in the header kid.');
  }
  await keys.requireSignature(message, storedAccountKey(account));
  const client = await requireClientOf(vault, request, account);
  return { issuer, account, client, actor: actorOf(client, request), nonce };
}

/** Whether an account is as the vault wrote it; logged if not. */
export function isUnmodified(
  { db, log }: DatabaseContext & LogContext,
  account: AcmeClientAccountRow & Recorded,
): boolean {
  if (clientAccountFits(requireIntegrity(db), account)) return true;
  log.error({ account: account.id }, 'ACME account refused: its database row was modified outside the vault');
  return false;
}

/**
 * The client of an account. Throws `unauthorized` if the account was deactivated, or if the client may not use this
 * directory.
 */
export async function requireClientOf(
  vault: CallerContext,
  request: SignedRequest,
  account: AcmeClientAccountRow,
): Promise<AcmeClient> {
  if (account.status !== 'valid') {
    // RFC 8555 §7.3.6 requires 401.
    throw new AcmeProblem('unauthorized', 'The account was deactivated.', { status: 401 });
  }
  const client = await findAcmeClient(vault, account.acme_client_id);
  if (client === undefined)
    throw new AcmeProblem('unauthorized', 'The ACME client of the account is not valid.');
  requireAccess(vault, request, client);
  return client;
}

/** Throws ClientRefused if the client may not use the directory, or not now or from there; notes that it was used. */
export function requireAccess(
  { world, keyUse }: WorldContext & UseContext,
  { issuer, origin }: SignedRequest,
  client: AcmeClient,
): void {
  const refusal = refusalOfClient(client, { ip: origin.ip, issuer: issuer.name, now: world.now() });
  if (refusal !== undefined) throw new ClientRefused(refusal, client, actorOf(client, { origin }));
  keyUse.noteAcmeClient(client.id, origin.ip);
}

/** The client of a request in the audit log. */
export function actorOf(
  { id, name }: Pick<AcmeClient, 'id' | 'name'>,
  { origin }: Pick<SignedRequest, 'origin'>,
): Actor {
  return { name: `acme-client:${id}:${name}`, ...origin };
}
