/**
 * Gives an account another key (RFC 8555 §7.3.5): the former key signs the request, the new one the message inside it.
 */
import { z } from 'zod';
import { toJson } from '../../../base/json.ts';
import { findClientAccountByKey } from '../../../db/tables/acme-server/acme-client-accounts.ts';
import { record } from '../../audit/audit.ts';
import type { TimedContext } from '../../contexts.ts';
import { type AccountKeys, readAccountKey, refuseOtherAlgorithm } from '../protocol/account-keys.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';
import { storeNonce } from '../protocol/nonces.ts';
import { parseObject, readMessage } from '../protocol/signed-messages.ts';
import { requireAccount, resourceOf, storeAccount } from './accounts.ts';
import type { AcmeCaller } from './callers.ts';

const inner = z.object({ account: z.string(), oldKey: z.unknown() });

/** The request for another key, as its sender signed it with the former one. */
export type KeyChange = {
  /** The payload: the message that the new key signed. */
  readonly payload: unknown;
  /** The URL of the request. */
  readonly url: string;
  /** The URL of the account. */
  readonly kid: string;
};

/** The key is that of another account. */
export class KeyInUse extends AcmeProblem {
  readonly accountId: number;

  constructor(accountId: number) {
    super('malformed', 'Another account has this key.', { status: 409 });
    this.accountId = accountId;
  }
}

/** Throws `malformed` for a message that does not say what §7.3.5 requires, and KeyInUse. */
export async function changeKey(
  vault: TimedContext,
  keys: AccountKeys,
  { account, client, issuer, actor, nonce }: AcmeCaller,
  { payload, url, kid }: KeyChange,
): Promise<void> {
  const message = readMessage(payload, 'The payload');
  const { header } = message;
  if (header.jwk === undefined) throw malformed('The payload must be signed with a jwk, the new key.');
  refuseOtherAlgorithm(message);
  const key = readAccountKey(header.jwk);
  await keys.requireSignature(message, key);
  if (header.url !== url) throw malformed('The payload is for another URL than the request.');
  if (header.nonce !== undefined) throw malformed('The payload must not have a nonce.');
  const { data } = inner.safeParse(parseObject(message.payload));
  if (data === undefined) throw malformed('The payload must sign an object with account and oldKey.');
  if (data.account !== kid) throw malformed('The payload is about another account than the request.');
  if (readAccountKey(data.oldKey).thumbprint !== account.thumbprint) {
    throw malformed('The oldKey is not the key of the account.');
  }
  await vault.db.write(async (writer) => {
    await storeNonce(writer, nonce);
    const owner = await findClientAccountByKey(writer, issuer.id, key.thumbprint);
    if (owner !== undefined) throw new KeyInUse(owner.id);
    const current = await requireAccount(writer, account.id);
    if (current.thumbprint !== account.thumbprint)
      throw malformed('The key of the account was changed meanwhile.');
    await storeAccount(writer, { ...current, jwk: toJson(key.jwk), thumbprint: key.thumbprint });
    const detail = { account: account.id, thumbprint: key.thumbprint };
    const resource = resourceOf(client);
    record(writer, { actor, action: 'acme_client.account_key_change', resource, detail }, vault.world.now());
  });
}

function malformed(detail: string): AcmeProblem {
  return new AcmeProblem('malformed', detail);
}
