/** Opens a vault: the data directory, the master key, the database and the private CA. */
import { statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import manifest from '../../../package.json' with { type: 'json' };
import { KeyedMutex } from '../../base/keyed-mutex.ts';
import { type Log, silentLog } from '../../base/log.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Signal } from '../../base/signal.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import type { Keyring } from '../../crypto/keyring.ts';
import { systemResolver } from '../../dns/resolver/system-resolver.ts';
import { KeyUse } from '../../domain/access/key-use.ts';
import { Refusals } from '../../domain/access/refusals.ts';
import { AuditBatch } from '../../domain/audit/audit-batch.ts';
import { BackupHealth } from '../../domain/backup/backup-health.ts';
import { finishRestore } from '../../domain/backup/restore-swap.ts';
import { Changes } from '../../domain/changes/changes.ts';
import { Freshness } from '../../domain/changes/freshness.ts';
import type { SecretsContext } from '../../domain/contexts.ts';
import { DiskSpace } from '../../domain/health/disk-space.ts';
import { Heartbeat } from '../../domain/health/heartbeat.ts';
import { Meter } from '../../domain/health/meter.ts';
import { AcmeClients } from '../../domain/issuance/acme-clients.ts';
import { ChallengeRemovals } from '../../domain/issuance/challenge-removals.ts';
import { ensureLocalCa } from '../../domain/issuance/local-ca.ts';
import { OpenedDnsProviders } from '../../domain/issuance/opened-dns-providers.ts';
import { bindMasterKey, masterKeyFits, missingMasterKeys } from '../../domain/master-key/master-key-check.ts';
import { settleKeyFile } from '../../domain/master-key/master-key-files.ts';
import { isRotating } from '../../domain/master-key/master-key-rotation.ts';
import { LeaseOwners } from '../../domain/presence/lease-owners.ts';
import { updateMark } from '../../domain/presence/served-vault.ts';
import {
  openDatabase,
  refuseUnsafePlace,
  refuseUnusableDatabase,
  type VaultDatabase,
} from '../../domain/presence/vault-database.ts';
import { ensureVaultIdentity } from '../../domain/presence/vault-identity.ts';
import { markPath, readMark } from '../../domain/presence/vault-mark.ts';
import {
  beginVault,
  creationRefused,
  endBeginning,
  refuseLostVault,
  type VaultPlaces,
} from '../../domain/presence/vault-presence.ts';
import { keptTargets } from '../../domain/upgrade/kept-targets.ts';
import { adoptRows } from '../../domain/upgrade/row-adoption.ts';
import type { Vault } from '../../domain/vault.ts';
import { allowanceFor } from '../../net/outbound-addresses.ts';
import { outboundGuard } from '../../net/outbound-guard.ts';
import { outboundHttp } from '../../net/outbound-http.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';
import { masterKeySource } from './master-key-command.ts';
import {
  createKeyring,
  failWithoutPrompt,
  makeDirectory,
  openKeyring,
  type PassphrasePrompt,
  Unlocking,
} from './master-keys.ts';

export type OpenVault = {
  readonly vault: Vault;
  readonly isNew: boolean;
  readonly close: () => Promise<void>;
};

/**
 * Opens the vault in the data directory. In an empty directory, `whenMissing: 'create'` creates a vault and `'refuse'` fails.
 * `ask` prompts for the passphrase of the master key if no file holds it; `startThread` starts the thread that writes. Throws OperatorError, without any change, if the
 * vault cannot be opened.
 */
export async function openVault(
  settings: Settings,
  world: World,
  whenMissing: 'create' | 'refuse',
  log: Log = silentLog,
  ask: PassphrasePrompt = failWithoutPrompt,
  { startThread }: { readonly startThread?: (library: string | undefined) => Worker | undefined } = {},
): Promise<OpenVault> {
  refuseExposedVault(settings, whenMissing);
  refuseUnsafePlace(settings.dataDir);
  finishRestore(settings.dataDir);
  const path = join(settings.dataDir, 'vault.db');
  const isNew = !hasContent(path);
  if (whenMissing === 'refuse') requireVault(settings);
  if (isNew) {
    refuseLostVault(settings);
    if (settings.noCreate) throw creationRefused(settings.dataDir);
    makeDirectory(settings.dataDir);
    beginVault(settings.dataDir);
  }
  const keyring = await loadKeyring(settings, world, isNew, ask);
  const mark = hasContent(path) ? refuseUnusableDatabase(path, keyring) : 'marked';
  const db = await openDatabase(path, world, { startThread });
  try {
    if (whenMissing === 'create') await db.requireWritable();
    await refuseWrongKey({ db, keyring, world }, settings);
    refuseOldCheckBlob(db, keyring);
    await adoptRows({ db, keyring, world }, log);
    const kept = await keptTargets({ db, keyring });
    if (settings.allowOutbound === undefined && kept.length > 0) {
      const addresses = kept.map(({ network, port = 0 }) => allowanceFor(network.text, port));
      log.info({ addresses }, 'allowing outbound addresses stored before --allow-outbound existed');
    }
    const guard = outboundGuard(settings.allowOutbound ?? kept);
    const outbound = outboundHttp(world, settings.proxies, `certificate-vault/${manifest.version}`, guard);
    const resolver = systemResolver(settings.resolver, undefined, guard);
    const audit = new AuditBatch(db, world);
    const disk = new DiskSpace(path, world, settings.audit.lowSpace);
    const vault: Vault = {
      world,
      log,
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
      outbound,
      guard,
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
    if (mark === 'unmarked') await updateMark(vault);
    if (whenMissing === 'create') {
      await ensureVaultIdentity(vault);
      endBeginning(settings.dataDir);
    }
    return { vault, isNew, close: () => close(vault) };
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Throws OperatorError if the directory holds no vault, or a vault that lost its database. */
export function requireVault(places: VaultPlaces): void {
  if (hasContent(join(places.dataDir, 'vault.db'))) return;
  refuseLostVault(places);
  throw new OperatorError(`no vault in ${places.dataDir}`, {
    hint: 'Start "vault serve" to create one, or use --data-dir to name another directory.',
  });
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
        hint: 'Restore the file from your copy, or use --master-key-file to name it. Nothing was changed.',
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
      `${masterKeySource(settings)} is not the master key of the vault in ${settings.dataDir}`,
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
 * Throws OperatorError if rows would be tagged a second time: a mark signed by the master key means that they are tagged.
 */
function refuseOldCheckBlob(db: VaultDatabase, keyring: Keyring): void {
  if (db.integrity !== undefined) return;
  const { path } = db.file;
  const mark = markPath(path);
  if (typeof readMark(mark, keyring) !== 'object') return;
  throw new OperatorError(`${path} is older than its mark ${mark}`, {
    hint: `Restore the newest backup. If you replaced the database with an older one yourself, empty the mark.\n  Fix: true >${mark}`,
  });
}

/** Waits until challenge records are removed and pending events recorded, then closes the database. */
async function close({ audit, refusals, keyUse, db, log, removals, owners }: Vault): Promise<void> {
  await removals.idle();
  await refusals.write('all').catch((error: unknown) => {
    log.error({ err: error }, 'failed to record counted refusals');
  });
  await audit.drain();
  await keyUse.write().catch((error: unknown) => {
    log.warn({ err: error }, 'failed to record the last use of API keys');
  });
  await db.close();
  owners.release();
}

function hasContent(path: string): boolean {
  try {
    return statSync(path).size > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new OperatorError(`cannot read the vault in ${dirname(path)}: ${describeSystemError(error)}`, {
      hint: 'Run the command as the user that owns the vault, or use --data-dir to name another directory.',
      cause: error,
    });
  }
}
