/**
 * Online backups: one file with the state of one moment, verified before it gets its name, and recorded. Private keys
 * in it stay sealed; the master key is in it only under a passphrase.
 */
import { statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import { describeFileError, describeSystemError, isNoSpaceError } from '../../base/system-error.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import { contextFor } from '../../crypto/secrets/master-key-file.ts';
import type { PassphraseSealed } from '../../crypto/secrets/passphrase-key.ts';
import { openUnderPassphrase, sealUnderPassphrase } from '../../crypto/secrets/passphrase-seal.ts';
import { CopyError } from '../../db/copy-error.ts';
import { Database } from '../../db/database.ts';
import { DatabaseCopy } from '../../db/database-copy.ts';
import { retirePreviousMasterKeys } from '../../db/tables/master-keys.ts';
import { putSetting, readSetting } from '../../db/tables/settings.ts';
import { passwordIssue } from '../access/password-policy.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, LogContext, SealingContext, SecretsContext } from '../contexts.ts';
import type { DiskSpace } from '../health/disk-space.ts';
import { ensureVaultIdentity } from '../instance/vault-identity.ts';
import { resealAll } from '../master-key/resealing.ts';
import { newDraft, publishDraft, refuseTarget, sealDraft } from './backup-file.ts';
import type { Manifest } from './backup-manifest.ts';
import { refuseDataDirectory, refuseForeignBackups, refuseFullDisk } from './backup-place.ts';

/** Options of a backup. */
export type BackupOrder = {
  readonly actor: Actor;
  /** The vault's version. */
  readonly version: string;
  /** Seals the master key in the backup. */
  readonly passphrase?: Secret<string> | undefined;
  /** Rejects unless the finished draft is a complete backup of this vault. Reads all of it, which may take seconds. */
  readonly verify: (draft: string, masterKey: MasterKey) => Promise<unknown>;
  /** Its number in a schedule. */
  readonly number?: number | undefined;
  /** Aborts between two steps, without a trace. */
  readonly signal?: AbortSignal | undefined;
};

/**
 * Writes a backup to `file`, which appears there complete or not at all. Throws OperatorError, having changed nothing,
 * if it cannot be written, or if it exists and `existing` is `refuse`.
 */
export async function backUpTo(
  vault: SecretsContext & LogContext,
  order: BackupOrder,
  file: string,
  existing: 'refuse' | 'replace',
): Promise<Manifest> {
  const path = resolve(file);
  refuseDataDirectory(vault, path);
  return written(path, async () => {
    await refuseForeignBackups(dirname(path));
    refuseTarget(path, existing);
    return withDraft(vault, order, dirname(path), async (draft, manifest) => {
      publishDraft(draft, path, existing);
      await recordBackup(vault, order, path, manifest);
      return manifest;
    });
  });
}

/** Placement of a finished backup: its name, and whether it counts as the last backup or is set aside. */
export type Placement = { readonly name: string; readonly as: 'the last' | 'set aside' };

/** Like `backUpTo`, but into a directory, where `place` chooses the name by the content. Returns the path too. */
export async function backUpInto(
  vault: SecretsContext & LogContext,
  order: BackupOrder,
  directory: string,
  place: (manifest: Manifest) => Placement,
): Promise<{ readonly path: string; readonly manifest: Manifest; readonly as: Placement['as'] }> {
  refuseDataDirectory(vault, join(directory, 'vault.backup'));
  return written(directory, async () => {
    await refuseForeignBackups(directory);
    return withDraft(vault, order, directory, async (draft, manifest) => {
      const { name, as } = place(manifest);
      const path = join(directory, name);
      refuseTarget(path, 'refuse');
      publishDraft(draft, path, 'refuse');
      await recordBackup(vault, order, path, manifest, as);
      return { path, manifest, as };
    });
  });
}

/**
 * Creates a backup in the data directory, passes it to `send`, which opens it, and removes it. Throws OperatorError if
 * the copy would leave the vault too little space.
 */
export async function backUpThrough(
  vault: SecretsContext & LogContext & { readonly disk: DiskSpace },
  order: BackupOrder,
  send: (draft: string) => Promise<void>,
): Promise<Manifest> {
  const directory = vault.db.directory;
  await refuseFullDisk(vault);
  return written(directory, () =>
    withDraft(vault, order, directory, async (draft, manifest) => {
      await send(draft);
      await recordBackup(vault, order, 'standard output', manifest);
      return manifest;
    }),
  );
}

/** Why this passphrase is rejected, as the end of a sentence; undefined if it is accepted. */
export function passphraseIssue(passphrase: Secret<string>): string | undefined {
  return passwordIssue('', passphrase.expose())?.replaceAll('password', 'passphrase');
}

/** Opens a master key that is sealed under a passphrase. */
export function openMasterKey(
  passphrase: Secret<string>,
  sealed: PassphraseSealed,
  keyId: string,
): Promise<Secret | undefined> {
  return openUnderPassphrase(passphrase, contextFor(keyId), sealed);
}

async function withDraft<T>(
  vault: SecretsContext,
  order: BackupOrder,
  directory: string,
  use: (draft: string, manifest: Manifest) => Promise<T>,
): Promise<T> {
  const { world, db } = vault;
  const draft = newDraft(directory, world);
  try {
    const { id } = await ensureVaultIdentity(vault);
    // Before the copy, which then holds everything up to this time.
    const createdAt = world.now();
    await db.copyTo(draft);
    order.signal?.throwIfAborted();
    const masterKey = await settleCopy(vault, draft);
    const facts = await new DatabaseCopy(draft).clean();
    const pruned = Number((await readSetting(db.reader, 'pruned-versions')) ?? 0);
    order.signal?.throwIfAborted();
    const manifest: Manifest = {
      format: 1,
      vault_version: order.version,
      created_at: formatTimestamp(createdAt),
      vault_id: id,
      ...(order.number !== undefined && { number: order.number }),
      key_ids: [masterKey.name],
      database_size: statSync(draft).size,
      schema: [...facts.schema],
      counts: facts.counts,
      ...(pruned > 0 && { pruned_versions: pruned }),
      ...(order.passphrase !== undefined && {
        sealed_master_key: await sealedMasterKey(vault, masterKey, order.passphrase),
      }),
    };
    await sealDraft(draft, manifest, masterKey);
    order.signal?.throwIfAborted();
    await order.verify(draft, masterKey);
    order.signal?.throwIfAborted();
    return await use(draft, manifest);
  } finally {
    new DatabaseCopy(draft).remove();
  }
}

/** Finishes a running rotation in the copy, so that each backup needs one master key. Returns that key. */
async function settleCopy({ world, keyring }: SealingContext, draft: string): Promise<MasterKey> {
  const { current = keyring.current.name, isRotating } = new DatabaseCopy(draft).masterKeys();
  const masterKey = keyring.find(current);
  if (masterKey === undefined) {
    throw new OperatorError(`the file of the current master key ${current} is missing`, {
      hint: 'Restore the file, then run the command again or restart the server.\n  Try: vault master-key status',
    });
  }
  if (!isRotating) return masterKey;
  const copy = await Database.open(draft, world);
  try {
    await resealAll({ db: copy, keyring, world });
    await copy.write((writer) => retirePreviousMasterKeys(writer, world.now()));
  } finally {
    await copy.close();
  }
  return masterKey;
}

function sealedMasterKey(
  { world }: SealingContext,
  masterKey: MasterKey,
  passphrase: Secret<string>,
): Promise<PassphraseSealed> {
  const context = contextFor(masterKey.name);
  return sealUnderPassphrase(world, passphrase, context, masterKey.exported());
}

async function recordBackup(
  { db, log }: DatabaseContext & LogContext,
  { actor }: BackupOrder,
  path: string,
  { created_at, sealed_master_key, database_size }: Manifest,
  as: Placement['as'] = 'the last',
): Promise<void> {
  const at = Date.parse(created_at);
  const event = {
    actor,
    action: 'backup.create',
    resource: `backup:${basename(path)}`,
    detail: { created_at, database_size, with_master_key: sealed_master_key !== undefined },
  } as const;
  try {
    await db.write(async (writer) => {
      if (as === 'the last') await putSetting(writer, 'last-backup-at', at);
      record(writer, event, at);
    });
  } catch (error) {
    log.error({ err: error }, 'backup created, but failed to record it');
    throw new OperatorError(
      `the backup is complete, but the vault failed to record it: ${describeFileError(error)}`,
      {
        hint: 'The backup can be restored, but the vault does not know about it.',
        cause: error,
      },
    );
  }
}

/** Runs `work`; turns errors of the disk at `place` into OperatorError. */
async function written<T>(place: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof OperatorError) throw error;
    if (isNoSpaceError(error) || (error instanceof CopyError && error.isFull)) {
      throw new OperatorError(`not enough space for the backup at ${place}`, {
        hint: 'Free some space, or choose another directory. Nothing was written.',
        cause: error,
      });
    }
    if (error instanceof CopyError && error.isUnclear) {
      throw new OperatorError(`cannot copy the database to ${place}: ${describeSystemError(error)}`, {
        hint: 'Check the disk of the database and the one of the backup (kernel log). Nothing was written.',
        cause: error,
      });
    }
    if (code === undefined && !(error instanceof CopyError)) throw error;
    throw new OperatorError(`cannot write the backup to ${place}: ${describeSystemError(error)}`, {
      hint: 'Choose an existing directory that this user can write to. Nothing was written.',
      cause: error,
    });
  }
}
