/** Lists ACME accounts for administrators and deletes unused ones. */
import { Problem } from '../../base/problem.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { AcmeAccountStatus } from '../../db/schema/schema.ts';
import {
  type AcmeAccountWithIssuers,
  deleteAcmeAccountRow,
  findAcmeAccount,
  issuersOfAcmeAccount,
  listAcmeAccounts,
} from '../../db/tables/issuance/acme-accounts.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';

export type AcmeAccountView = {
  id: string;
  /** The issuers that use it, separated by commas, or the one that registered it. */
  issuer: string;
  directory_url: string;
  email: string | null;
  status: AcmeAccountStatus;
  /** Whether an issuer uses it. */
  current: boolean;
  created_at: string;
};

/** Accounts by id, at most `limit` after the id `after`. */
export async function listAccounts(
  { db }: DatabaseContext,
  page: { readonly after?: number | undefined; readonly limit?: number } = {},
): Promise<AcmeAccountWithIssuers[]> {
  return listAcmeAccounts(db.reader, page);
}

/** The account as the API shows it, without its key. */
export function acmeAccountView(account: AcmeAccountWithIssuers): AcmeAccountView {
  const isCurrent = account.issuers.length > 0;
  return {
    id: String(account.id),
    issuer: isCurrent ? account.issuers.join(', ') : account.issuer,
    directory_url: account.directory_url,
    email: account.email,
    status: account.status,
    current: isCurrent,
    created_at: formatTimestamp(account.created_at),
  };
}

/**
 * Deletes an account and its key in the vault, but not at the CA. Throws `acme_account_not_found`, also for an invalid
 * id, and `acme_account_current` while an issuer uses it.
 */
export async function deleteAccount({ db, world }: TimedContext, actor: Actor, id: string): Promise<void> {
  await db.write(async (writer) => {
    const number = accountNumber(id);
    const account = number === undefined ? undefined : await findAcmeAccount(writer, number);
    if (account === undefined) {
      throw new Problem('acme_account_not_found', { hint: 'Try: vault acme-account list' });
    }
    const issuers = await issuersOfAcmeAccount(writer, account.id);
    if (issuers.length > 0) {
      throw new Problem('acme_account_current', {
        detail: `ACME account ${id} cannot be deleted: issuer ${issuers.join(', ')} uses it.`,
        hint: 'Remove the issuer first, or change its directory.',
      });
    }
    await deleteAcmeAccountRow(writer, account.id);
    const { issuer, directory_url, account_url, email } = account;
    record(
      writer,
      {
        actor,
        action: 'acme_account.delete',
        resource: `acme-account:${id}`,
        detail: { issuer, directory_url, account_url, email },
      },
      world.now(),
    );
  });
}

function accountNumber(id: string): number | undefined {
  return /^[1-9]\d{0,14}$/.test(id) ? Number(id) : undefined;
}
