/**
 * All migrations of a database on a PostgreSQL server, in order. They have the names of SQLite's, so that both engines
 * name a schema alike.
 */
import type { Kysely } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { OperatorError } from '../../../base/operator-error.ts';
import { firstSchema } from './migration-0013-first-schema.ts';
import { nodes } from './migration-0014-nodes.ts';
import { privateCa } from './migration-0015-private-ca.ts';
import { certificateRequests } from './migration-0016-certificate-requests.ts';
import { privateCas } from './migration-0017-private-cas.ts';
import { issuanceProfiles } from './migration-0018-issuance-profiles.ts';
import { caRotation } from './migration-0019-ca-rotation.ts';
import { acmeServer } from './migration-0020-acme-server.ts';
import { rowRecords } from './migration-0021-row-records.ts';
import { deletedInPlace } from './migration-0022-deleted-in-place.ts';
import { roles } from './migration-0023-roles.ts';
import { pendingChanges } from './migration-0024-pending-changes.ts';
import { oidc } from './migration-0025-oidc.ts';
import { clientCertificates } from './migration-0026-client-certificates.ts';
import { secondFactors } from './migration-0027-second-factors.ts';
import { labels } from './migration-0028-labels.ts';
import { deployments } from './migration-0029-deployments.ts';
import { deploymentAlerts } from './migration-0030-deployment-alerts.ts';
import { administratorProfiles } from './migration-0031-administrator-profiles.ts';
import { endpoints } from './migration-0032-endpoints.ts';
import { acmeOrderLimits } from './migration-0033-acme-order-limits.ts';
import { enrollments } from './migration-0034-enrollments.ts';
import { replacements } from './migration-0035-replacements.ts';
import { scans } from './migration-0036-scans.ts';
import { deployTargets } from './migration-0037-deploy-targets.ts';
import { openReplacements } from './migration-0038-open-replacements.ts';

export type Migrations = Readonly<Record<string, Migration>>;

/** Append only: shipped migrations are never edited, renamed or reordered. */
export const migrations: Migrations = {
  '0013-rotated-keys': firstSchema,
  '0014-nodes': nodes,
  '0015-private-ca': privateCa,
  '0016-certificate-requests': certificateRequests,
  '0017-private-cas': privateCas,
  '0018-issuance-profiles': issuanceProfiles,
  '0019-ca-rotation': caRotation,
  '0020-acme-server': acmeServer,
  '0021-row-records': rowRecords,
  '0022-deleted-in-place': deletedInPlace,
  '0023-roles': roles,
  '0024-pending-changes': pendingChanges,
  '0025-oidc': oidc,
  '0026-client-certificates': clientCertificates,
  '0027-second-factors': secondFactors,
  '0028-labels': labels,
  '0029-deployments': deployments,
  '0030-deployment-alerts': deploymentAlerts,
  '0031-administrator-profiles': administratorProfiles,
  '0032-endpoints': endpoints,
  '0033-acme-order-limits': acmeOrderLimits,
  '0034-enrollments': enrollments,
  '0035-replacements': replacements,
  '0036-scans': scans,
  '0037-deploy-targets': deployTargets,
  '0038-open-replacements': openReplacements,
};

/**
 * Migrates the database to the newest schema in one transaction, so that if it fails, nothing has changed. Call it
 * while no other process can migrate. Throws the server's own error.
 */
export async function migrate(transaction: Kysely<unknown>, known: Migrations = migrations): Promise<void> {
  let cause: unknown;
  const provider = {
    getMigrations: async () =>
      Object.fromEntries(
        Object.entries(known).map(([name, { up }]) => [
          name,
          { up: (db: Kysely<unknown>) => up(db).catch(keep) },
        ]),
      ),
  };
  // What Kysely does after a failure fails too, since the transaction has ended, and would hide the cause.
  const keep = (error: unknown) => {
    cause ??= error;
    throw error;
  };
  const { error } = await new Migrator({ db: transaction, provider }).migrateToLatest();
  if (error !== undefined) throw cause ?? error;
}

/** Throws OperatorError if a newer vault migrated the database: it has applied `names`. */
export function refuseNewerSchema(
  names: readonly string[],
  place: string,
  known: Migrations = migrations,
): void {
  const newer = names.filter((name) => !Object.hasOwn(known, name));
  if (newer.length === 0) return;
  throw new OperatorError(`${place} was written by a newer vault (its schema has ${newer.join(', ')})`, {
    hint: 'Start the newer vault again, or restore a backup from before the upgrade.',
  });
}
