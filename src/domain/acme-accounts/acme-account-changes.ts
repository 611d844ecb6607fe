/** Key rollover and deactivation of ACME accounts (RFC 8555 §7.3.5, §7.3.6). */
import { deactivateAccount, rolloverKey } from '../../acme/accounts.ts';
import type { AcmeClient } from '../../acme/acme-client.ts';
import { AcmeError } from '../../acme/acme-error.ts';
import { Problem } from '../../base/problem.ts';
import type { Secret } from '../../base/secret.ts';
import { generatePrivateKey } from '../../crypto/key-pair.ts';
import {
  type AcmeAccountRow,
  findAcmeAccount,
  updateAcmeAccount,
} from '../../db/tables/issuance/acme-accounts.ts';
import { findCaOfDirectory } from '../../db/tables/issuance/issuers.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, SecretsContext } from '../contexts.ts';
import type { CaContext } from '../issuance-contexts.ts';
import { nextAccountKeyOwner, openFor, sealFor } from '../sealed-secrets.ts';
import { adoptKey, ownAccount, settleRollover } from './acme-account.ts';

/**
 * Changes the key of an account. The new key is stored before the request, so that after a crash the next use finds out
 * which key the CA has. A rollover that may still be running is repeated with the same new key, so that two concurrent
 * ones agree. Throws `acme_account_not_found` and AcmeError.
 */
export async function rolloverAccount(
  vault: SecretsContext & CaContext,
  actor: Actor,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, account: row } = await openAccount(vault, id);
  const settled = await settleRollover(vault, client, row, signal);
  const now = vault.world.now();
  const next = await nextKey(vault, row.id, now);
  try {
    await rolloverKey(client, ownAccount(vault, settled), next, signal);
  } catch (error) {
    // The CA answered, so unless another rollover is running, the next use may settle which key is valid.
    if (error instanceof AcmeError && error.kind === 'problem') await endRollover(vault, row.id, now);
    throw error;
  }
  await vault.db.write(async (writer) => {
    await adoptKey(vault, writer, row, next);
    const event = { actor, action: 'acme_account.rollover', resource: `acme-account:${id}` } as const;
    record(writer, event, vault.world.now());
  });
}

/** The new key of the account, stored now or by an unfinished rollover. */
async function nextKey(vault: SecretsContext, id: number, now: number): Promise<Secret> {
  const fresh = await generatePrivateKey('ec256');
  const owner = nextAccountKeyOwner(id);
  return vault.db.write(async (writer) => {
    const sealed = (await findAcmeAccount(writer, id))?.sealed_next_private_key ?? null;
    const key = sealed === null ? fresh : openFor(vault, owner, sealed);
    await updateAcmeAccount(writer, id, {
      sealed_next_private_key: await sealFor(vault, writer, owner, key),
      rollover_at: now,
    });
    return key;
  });
}

async function endRollover({ db }: DatabaseContext, id: number, begunAt: number): Promise<void> {
  await db.write(async (writer) => {
    const row = await findAcmeAccount(writer, id);
    if (row?.rollover_at === begunAt) await updateAcmeAccount(writer, id, { rollover_at: null });
  });
}

/** Deactivates the account at the CA permanently. Its issuers register a new one with their next order. */
export async function closeAccount(
  vault: SecretsContext & CaContext,
  actor: Actor,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const { client, account: row } = await openAccount(vault, id);
  const settled = await settleRollover(vault, client, row, signal);
  await deactivateAccount(client, ownAccount(vault, settled), signal);
  await vault.db.write(async (writer) => {
    await updateAcmeAccount(writer, row.id, { status: 'deactivated' });
    const event = { actor, action: 'acme_account.deactivate', resource: `acme-account:${id}` } as const;
    record(writer, event, vault.world.now());
  });
}

async function openAccount(
  vault: CaContext,
  id: string,
): Promise<{ client: AcmeClient; account: AcmeAccountRow }> {
  const account = /^[1-9]\d{0,14}$/.test(id) ? await findAcmeAccount(vault.db.reader, Number(id)) : undefined;
  if (account === undefined) {
    throw new Problem('acme_account_not_found', {
      hint: 'Try: vault acme-account list',
    });
  }
  const ca = await findCaOfDirectory(vault.db.reader, account.directory_url);
  const { directory_url } = account;
  return { client: vault.acme.at({ directory_url, ca_pem: ca?.ca_pem ?? null }), account };
}
