/** What the vault holds and what it has to do, counted: for its metrics and for administrators. */

import { countApiKeys } from '../../db/tables/access/api-keys.ts';
import { lastGivenId } from '../../db/tables/assigned-ids.ts';
import { listDnsProviders } from '../../db/tables/issuance/dns-providers.ts';
import { listIssuers } from '../../db/tables/issuance/issuers.ts';
import { countUntaken } from '../../db/tables/notifications/notification-deliveries.ts';
import { countOpenRenewals } from '../../db/tables/renewals/renewals.ts';
import { listAccounts } from '../acme-accounts/acme-accounts.ts';
import { lastBackupAt } from '../backup/backup-age.ts';
import { countCertificates } from '../certificates/certificate-search.ts';
import type { CertificateStatus } from '../certificates/certificate-status.ts';
import type { DatabaseContext, TimedContext } from '../contexts.ts';

export type Holdings = {
  certificates: Record<CertificateStatus, number>;
  api_keys: number;
  issuers: number;
  dns_providers: number;
  acme_accounts: number;
};

/** How much of everything the vault holds. */
export async function countHoldings(context: TimedContext): Promise<Holdings> {
  const { reader } = context.db;
  return {
    certificates: await countCertificates(context),
    api_keys: await countApiKeys(reader),
    issuers: (await listIssuers(reader)).length,
    dns_providers: (await listDnsProviders(reader)).length,
    acme_accounts: (await listAccounts(context)).length,
  };
}

export type WorkCounts = {
  readonly renewals: { readonly queued: number; readonly running: number };
  /** Deliveries of notifications that no receiver has taken. */
  readonly untakenDeliveries: number;
  readonly apiKeys: number;
  /** Audit events ever recorded. */
  readonly auditEvents: number;
  /** UTC milliseconds; undefined where there is no backup. */
  readonly lastBackupAt: number | undefined;
};

/** What is open and what was recorded, for metrics. */
export async function countWork({ db: { reader } }: DatabaseContext): Promise<WorkCounts> {
  return {
    renewals: await countOpenRenewals(reader),
    lastBackupAt: await lastBackupAt(reader),
    untakenDeliveries: await countUntaken(reader),
    apiKeys: await countApiKeys(reader),
    auditEvents: await lastGivenId(reader),
  };
}
