/**
 * All migrations in order. They are applied in one transaction, after the database was copied, and never to a database
 * from a newer vault.
 */
import { realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import BetterSqlite3 from 'better-sqlite3';
import { type Kysely, sql } from 'kysely';
import { type Migration, Migrator } from 'kysely/migration';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { databaseName } from './database-files.ts';
import { refuseLostLog } from './lost-log.ts';
import { firstSchema } from './migrations/migration-0001-first-schema.ts';
import { acme } from './migrations/migration-0002-acme.ts';
import { administration } from './migrations/migration-0003-console.ts';
import { auditIndexes } from './migrations/migration-0004-audit-indexes.ts';
import { keyNetworks } from './migrations/migration-0005-key-networks.ts';
import { auditChain } from './migrations/migration-0006-audit-chain.ts';
import { auditBlocks } from './migrations/migration-0007-audit-blocks.ts';
import { masterKeys } from './migrations/migration-0008-master-keys.ts';
import { notifications } from './migrations/migration-0009-notifications.ts';
import { rowTags } from './migrations/migration-0010-row-tags.ts';
import { renewalPressure } from './migrations/migration-0011-renewal-pressure.ts';
import { keptKeys } from './migrations/migration-0012-kept-keys.ts';
import { rotatedKeys } from './migrations/migration-0013-rotated-keys.ts';
import { nodes } from './migrations/migration-0014-nodes.ts';
import { privateCa } from './migrations/migration-0015-private-ca.ts';
import { certificateRequests } from './migrations/migration-0016-certificate-requests.ts';
import { privateCas } from './migrations/migration-0017-private-cas.ts';
import { issuanceProfiles } from './migrations/migration-0018-issuance-profiles.ts';
import { caRotation } from './migrations/migration-0019-ca-rotation.ts';
import { acmeServer } from './migrations/migration-0020-acme-server.ts';
import { rowRecords } from './migrations/migration-0021-row-records.ts';
import { deletedInPlace } from './migrations/migration-0022-deleted-in-place.ts';
import { roles } from './migrations/migration-0023-roles.ts';
import { pendingChanges } from './migrations/migration-0024-pending-changes.ts';
import { oidc } from './migrations/migration-0025-oidc.ts';
import { clientCertificates } from './migrations/migration-0026-client-certificates.ts';
import { secondFactors } from './migrations/migration-0027-second-factors.ts';
import { labels } from './migrations/migration-0028-labels.ts';
import { deployments } from './migrations/migration-0029-deployments.ts';
import { deploymentAlerts } from './migrations/migration-0030-deployment-alerts.ts';
import { administratorProfiles } from './migrations/migration-0031-administrator-profiles.ts';
import { endpoints } from './migrations/migration-0032-endpoints.ts';
import { acmeOrderLimits } from './migrations/migration-0033-acme-order-limits.ts';
import { enrollments } from './migrations/migration-0034-enrollments.ts';
import { replacements } from './migrations/migration-0035-replacements.ts';
import { scans } from './migrations/migration-0036-scans.ts';
import { deployTargets } from './migrations/migration-0037-deploy-targets.ts';
import { openReplacements } from './migrations/migration-0038-open-replacements.ts';
import { heldLocks } from './process-lock.ts';
import { isBusy } from './storage-error.ts';
import { copyBeforeMigration, pruneCopies } from './upgrade-copy.ts';
import { openForReading, openingPatienceMs } from './write-connection.ts';

export type Migrations = Readonly<Record<string, Migration>>;

/** Append only: shipped migrations are never edited, renamed or reordered. */
export const migrations: Migrations = {
  '0001-first-schema': firstSchema,
  '0002-acme': acme,
  '0003-console': administration,
  '0004-audit-indexes': auditIndexes,
  '0005-key-networks': keyNetworks,
  '0006-audit-chain': auditChain,
  '0007-audit-blocks': auditBlocks,
  '0008-master-keys': masterKeys,
  '0009-notifications': notifications,
  '0010-row-tags': rowTags,
  '0011-renewal-pressure': renewalPressure,
  '0012-kept-keys': keptKeys,
  '0013-rotated-keys': rotatedKeys,
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

/** The name of the newest schema. */
const schemaVersion = Object.keys(migrations).at(-1) ?? '';

/** Identifies the file as a vault database ("CVlt"), as shown by `file` and other programs. */
const applicationId = 0x43566c74;

/**
 * Migrates the database to the newest schema in one IMMEDIATE transaction, so that if two processes start together, one
 * migrates and the other has nothing to do. Calls `onUpgraded` with the path of the copy made before, if there was
 * anything to copy. Throws OperatorError if a process has the database open, because an older one would keep writing
 * what the newer schema lacks.
 */
export async function migrate<S>(
  database: BetterSqlite3.Database,
  db: Kysely<S>,
  known: Migrations = migrations,
  onUpgraded?: (copy: string) => void,
): Promise<void> {
  if (pendingMigrations(database, known).length === 0) return;
  const upgraded = await db.transaction().execute(async (transaction) => {
    const [first] = pendingMigrations(database, known);
    if (first === undefined) return undefined;
    const isUpgrade = appliedMigrations(database).length > 0;
    if (isUpgrade) refuseLocked(database);
    const copy = isUpgrade ? await copyBeforeMigration(database, first) : undefined;
    const migrator = new Migrator({
      db: transaction,
      provider: { getMigrations: async () => ({ ...known }) },
    });
    const { error } = await migrator.migrateToLatest();
    if (error !== undefined) throw error;
    await sql.raw(`pragma application_id = ${applicationId}`).execute(transaction);
    pruneCopies(database);
    return copy;
  });
  if (upgraded !== undefined) onUpgraded?.(upgraded);
}

function refuseLocked({ name }: BetterSqlite3.Database): void {
  if (basename(name) !== databaseName || heldLocks(dirname(realpathSync(name))).length === 0) return;
  throw inUse(name);
}

/** Pauses between attempts to lock a database; random, so that one of two competing processes succeeds. */
const pausesMs = { shortest: 50, more: 200 };

/**
 * Throws OperatorError if the database needs an upgrade and another process has it open, such as a server of a version
 * that took no lock. Call it before this process opens the database; changes nothing. If another process runs the same
 * upgrade, waits as long as for any other lock.
 */
export async function refuseInUse(
  path: string,
  { elapsed, sleep, randomBytes }: Pick<World, 'elapsed' | 'sleep' | 'randomBytes'>,
  known: Migrations = migrations,
): Promise<void> {
  const giveUpAt = elapsed() + openingPatienceMs;
  while (isUpgradeDue(path, known)) {
    if (isAlone(path)) return;
    if (elapsed() >= giveUpAt) throw inUse(path);
    const { shortest, more } = pausesMs;
    await sleep(shortest + (more * (randomBytes(1)[0] ?? 0)) / 256);
  }
}

/**
 * Every process that has a database open in WAL mode holds a lock that makes this fail. Other errors recur on opening.
 */
function isAlone(path: string): boolean {
  const database = new BetterSqlite3(path, { fileMustExist: true, timeout: 100 });
  try {
    database.pragma('locking_mode = exclusive');
    database.exec('begin exclusive');
    database.exec('rollback');
    return true;
  } catch (error) {
    return !isBusy(error);
  } finally {
    database.close();
  }
}

function isUpgradeDue(path: string, known: Migrations): boolean {
  // Opening would create a new log.
  refuseLostLog(path);
  const database = openForReading(path);
  try {
    return appliedMigrations(database).length > 0 && pendingMigrations(database, known).length > 0;
  } finally {
    database.close();
  }
}

function inUse(path: string): OperatorError {
  return new OperatorError(`${path} needs an upgrade, but another process has the vault open`, {
    hint: 'Stop the older "vault serve" first, then start it with this version. Nothing was changed.',
  });
}

/** Throws OperatorError if the database belongs to another program or comes from a newer vault. Changes nothing. */
export function refuseForeignDatabase(
  database: BetterSqlite3.Database,
  known: Migrations = migrations,
): void {
  const isOurs = database.pragma('application_id', { simple: true }) === applicationId;
  const tables = database.prepare("select count(*) from sqlite_schema where type = 'table'").pluck().get();
  if (!isOurs && tables !== 0) {
    throw new OperatorError(`${database.name} is a database of another program`, {
      hint: 'Set --data-dir to another directory, or move the file away.',
    });
  }
  const newer = appliedMigrations(database).filter((name) => !(name in known));
  if (newer.length > 0) {
    throw new OperatorError(
      `${database.name} was written by a newer vault (its schema has ${newer.join(', ')})`,
      {
        hint: 'Start the newer vault again, or restore the copy from before the upgrade.',
      },
    );
  }
}

/** Whether this vault has a migration with this name. */
export function isKnownMigration(name: string): boolean {
  return Object.hasOwn(migrations, name);
}

/** The version of the embedded SQLite, and the name of the newest schema. */
export function storageVersion(): { readonly sqlite: string; readonly schema: string } {
  const memory = new BetterSqlite3(':memory:');
  try {
    const sqlite = memory.prepare('select sqlite_version()').pluck().get() as string;
    return { sqlite, schema: schemaVersion };
  } finally {
    memory.close();
  }
}

/** Names of the applied migrations, oldest first; none if the database is new. */
export function appliedMigrations(database: BetterSqlite3.Database): string[] {
  const table = "select 1 from sqlite_schema where type = 'table' and name = 'kysely_migration'";
  if (database.prepare(table).get() === undefined) return [];
  return database.prepare('select name from kysely_migration order by name').pluck().all() as string[];
}

function pendingMigrations(database: BetterSqlite3.Database, known: Migrations): string[] {
  const applied = appliedMigrations(database);
  return Object.keys(known).filter((name) => !applied.includes(name));
}
