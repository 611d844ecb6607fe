/** Opens a vault: the data directory, the master key, the database and the private CA. */
import manifest from '../../../package.json' with { type: 'json' };
import { KeyedMutex } from '../../base/keyed-mutex.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Signal } from '../../base/signal.ts';
import type { World } from '../../base/world.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import { systemResolver } from '../../dns/resolver/system-resolver.ts';
import { KeyUse } from '../../domain/access/key-use.ts';
import { Refusals } from '../../domain/access/refusals.ts';
import { AcmeClients } from '../../domain/acme-accounts/acme-clients.ts';
import { Validations } from '../../domain/acme-server/validation/validations.ts';
import { AuditBatch } from '../../domain/audit/audit-batch.ts';
import { BackupHealth } from '../../domain/backup/backup-health.ts';
import { Changes } from '../../domain/cache/change-feed.ts';
import { Freshness } from '../../domain/cache/freshness.ts';
import type { SecretsContext } from '../../domain/contexts.ts';
import { OpenedDnsProviders } from '../../domain/dns-providers/opened-dns-providers.ts';
import { DiskSpace } from '../../domain/health/disk-space.ts';
import { Heartbeat } from '../../domain/health/heartbeat.ts';
import { Meter } from '../../domain/health/meter.ts';
import { keptTargets } from '../../domain/instance/legacy-outbound-targets.ts';
import { databaseIn, type VaultDatabase } from '../../domain/instance/vault-database.ts';
import { ensureVaultIdentity } from '../../domain/instance/vault-identity.ts';
import { bindMasterKey, masterKeyFits, missingMasterKeys } from '../../domain/master-key/master-key-check.ts';
import { settleKeyFile } from '../../domain/master-key/master-key-files.ts';
import { isRotating } from '../../domain/master-key/master-key-rotation.ts';
import { adoptRows } from '../../domain/master-key/row-tag-backfill.ts';
import { DatabaseClock, type DatabaseNow } from '../../domain/nodes/database-clock.ts';
import { LeaseOwners } from '../../domain/nodes/lease-owners.ts';
import { ChallengeRemovals } from '../../domain/orders/challenge-removals.ts';
import { ensureLocalCa } from '../../domain/private-ca/local-ca.ts';
import type { Vault } from '../../domain/vault.ts';
import { allowanceFor } from '../../net/outbound-addresses.ts';
import { outboundGuard } from '../../net/outbound-guard.ts';
import { outboundHttp } from '../../net/outbound-http.ts';
import { validationGuard } from '../../net/validation-guard.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';
import { masterKeySource } from './master-key-command.ts';
import {
  createKeyring,
  failWithoutPrompt,
  openKeyring,
  type PassphrasePrompt,
  Unlocking,
} from './master-keys.ts';
import { type StoreOptions, type VaultStore, vaultStore, type WhenMissing } from './vault-store.ts';

export type OpenVault = {
  readonly vault: Vault;
  readonly isNew: boolean;
  readonly close: () => Promise<void>;
};

export type OpenVaultOptions = Omit<StoreOptions, 'whenMissing'> & {
  readonly databaseNow?: DatabaseNow | undefined;
  /** The master keys, if the caller has them; otherwise the settings tell where they are. */
  readonly keyring?: Keyring | undefined;
};

/**
 * Opens the vault in the data directory. In an empty directory, `whenMissing: 'create'` creates a vault and `'refuse'`
 * fails. `ask` prompts for the passphrase of the master key if no file holds it; `options` as in `vaultStore`;
 * `databaseNow` asks a database that several nodes share what time it is. Throws OperatorError, without any change, if
 * the vault cannot be opened.
 */
export async function openVault(
  settings: Settings,
  machine: World,
  whenMissing: WhenMissing,
  log: Log = silentLog,
  ask: PassphrasePrompt = failWithoutPrompt,
  { databaseNow, keyring: given, ...options }: OpenVaultOptions = {},
): Promise<OpenVault> {
  refuseExposedVault(settings, whenMissing);
  const store = await vaultStore(settings, machine, { whenMissing, ...options });
  try {
    const keyring = given ?? (await loadKeyring(settings, machine, store.isNew, ask));
    return await openIn(store, { settings, whenMissing, keyring, machine, log, databaseNow });
  } catch (error) {
    await store.abandon();
    throw error;
  }
}

type Opening = {
  readonly settings: Settings;
  readonly whenMissing: WhenMissing;
  readonly keyring: Keyring;
  readonly machine: World;
  readonly log: Log;
  readonly databaseNow: DatabaseNow | undefined;
};

async function openIn(
  store: VaultStore,
  { settings, whenMissing, keyring, machine, log, databaseNow }: Opening,
): Promise<OpenVault> {
  const { isNew } = store;
  const db = await store.open(keyring);
  const sharedClock = clockOf(db, machine, databaseNow);
  await sharedClock?.measure();
  const world = sharedClock?.world ?? machine;
  if (whenMissing === 'create') await db.requireWritable();
  await refuseWrongKey({ db, keyring, world }, settings);
  store.refuseOldCopy(db, keyring);
  db.memory.onLost = (lost) => log.error(lost, 'audit log stepped back: run "vault audit verify"');
  await adoptRows({ db, keyring, world }, log);
  const kept = await keptTargets({ db, log });
  if (settings.allowOutbound === undefined && kept.length > 0) {
    const addresses = kept.map(({ network, port = 0 }) => allowanceFor(network.text, port));
    log.info({ addresses }, 'allowing outbound addresses stored before --allow-outbound existed');
  }
  const guard = outboundGuard(settings.allowOutbound ?? kept);
  const userAgent = `certificate-vault/${manifest.version}`;
  const outbound = outboundHttp(world, settings.proxies, userAgent, guard);
  const resolver = systemResolver(settings.resolver, undefined, guard);
  const audit = new AuditBatch(db, world);
  const disk = new DiskSpace(databaseIn(settings.dataDir).path, world, settings.audit.lowSpace);
  await disk.begin();
  const vault: Vault = {
    world,
    log,
    sharedClock,
    db,
    keyring,
    audit,
    refusals: new Refusals(audit, world, disk),
    disk,
    freshness: new Freshness(db, world),
    changes: new Changes(db, world),
    keyUse: new KeyUse(db, world),
    owners: new LeaseOwners(settings.dataDir, world),
    renewalQueued: new Signal(world),
    renewalEnded: new Signal(world),
    renewalHeartbeat: new Heartbeat(world),
    failedChecks: new Set(),
    outbound,
    guard,
    endpointGuard: outboundGuard(settings.endpoints.allowed, undefined, {
      setting: 'endpoint-allow',
      forbidden: settings.endpoints.forbidden,
    }),
    scannable: settings.endpoints.allowed.flatMap(({ network, port }) => (port === undefined ? network : [])),
    validation: {
      resolver,
      guard: validationGuard(settings.acmeServer),
      ports: settings.acmeServer.ports,
      caaIdentities: settings.acmeServer.caaIdentities,
      userAgent: `${userAgent} (ACME validation)`,
    },
    validations: new Validations(),
    acme: new AcmeClients({ world, outbound, log }),
    dns: new OpenedDnsProviders({ world, outbound, guard, resolver, log }),
    turns: new KeyedMutex(),
    removals: new ChallengeRemovals(),
    backupHealth: new BackupHealth(),
    meter: new Meter(),
    allowsDrafts: settings.acmeDrafts,
  };
  await settleKeyFile(vault);
  if (await isRotating(vault)) {
    log.warn({}, 'master key rotation is not finished; run "vault master-key rotate" to resume it');
  }
  await ensureLocalCa(vault);
  if (whenMissing === 'create') await ensureVaultIdentity(vault);
  await store.settle(vault);
  // After the database is open, and until just before it closes: while a server holds its lock, the database has a log.
  if (whenMissing === 'create' && db.file !== undefined) vault.owners.hold();
  return { vault, isNew, close: () => close(vault) };
}

/** The clock that all nodes of a database on a server go by; a clock that a test sets is that of its database, too. */
function clockOf(
  db: VaultDatabase,
  machine: World,
  databaseNow: DatabaseNow | undefined,
): DatabaseClock | undefined {
  if (databaseNow !== undefined) return new DatabaseClock(machine, databaseNow);
  if (!db.isShared) return undefined;
  return new DatabaseClock(machine, machine.isSet === true ? machine.now : () => db.now());
}

async function loadKeyring(
  settings: Settings,
  world: World,
  isNew: boolean,
  ask: PassphrasePrompt,
): Promise<Keyring> {
  const { masterKeyFile } = settings;
  const unlocking = new Unlocking(settings, ask);
  const existing = await openKeyring(settings, unlocking, world);
  if (existing !== undefined) return existing;
  if (!isNew) {
    throw new OperatorError(
      `the master key ${masterKeyFile} is missing; no private key can be opened without it`,
      {
        hint:
          settings.database === undefined
            ? 'Restore the file from your copy, or use --master-key-file to name it. Nothing was changed.'
            : `Copy it from another node, for example: scp NODE:${masterKeyFile} ${masterKeyFile}\n  Or use --master-key-file to name it. Nothing was changed.`,
      },
    );
  }
  return createKeyring(settings, unlocking, world);
}

async function refuseWrongKey(parts: SecretsContext, settings: Settings): Promise<void> {
  const verdict = await masterKeyFits(parts);
  if (verdict === 'absent') await bindMasterKey(parts);
  if (verdict === 'does-not-fit' || (await masterKeyFits(parts)) !== 'fits') {
    throw new OperatorError(
      `${masterKeySource(settings)} is not the master key of the vault in ${parts.db.file === undefined ? parts.db.place : settings.dataDir}`,
      {
        hint:
          settings.masterKeyCommand === undefined
            ? 'Restore the right key from your copy, or use --master-key-file to name it. Nothing was changed.'
            : 'The command must print the key that "vault master-key status" shows as current. Nothing was changed.',
      },
    );
  }
  const missing = await missingMasterKeys(parts);
  if (missing.length > 0) {
    throw new OperatorError(
      `a rotation is not finished, and master key ${missing.join(', ')} is missing beside ${masterKeySource(settings)}`,
      {
        hint:
          settings.masterKeyCommand === undefined
            ? `Some secrets need it. Restore it as ${settings.masterKeyFile}.${missing[0]}. Nothing was changed.`
            : 'Put both keys into files to finish it. Nothing was changed.\n  Try: vault master-key rotate --master-key-file FILE',
      },
    );
  }
}

/**
 * Ends validations, waits until challenge records are removed and pending events recorded, then closes the database.
 */
async function close(vault: Vault): Promise<void> {
  const { audit, refusals, keyUse, db, log, removals, owners, validations } = vault;
  await validations.end();
  await removals.idle();
  await refusals.write('all').catch((error: unknown) => {
    log.error({ err: error }, 'failed to record counted refusals');
  });
  await audit.drain();
  await keyUse.write().catch((error: unknown) => {
    log.warn({ err: error }, 'failed to record the last use of API keys');
  });
  owners.release();
  await db.close();
}
