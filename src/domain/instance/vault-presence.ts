/**
 * Whether a data directory may get a new vault: not if it had one whose database is lost. Traces of that are a log, a
 * mark, or a master key in the default place.
 */
import { closeSync, existsSync, openSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { removeFile, syncPath } from '../../base/durable-file.ts';
import { hasContent } from '../../base/file-content.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { StorageError } from '../../base/storage-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import { realPath } from '../../crypto/secrets/keyring.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import { markPath } from './vault-mark.ts';

export type VaultPlaces = {
  readonly dataDir: string;
  readonly masterKeyFile: string;
  /** `default` if neither a setting nor the service manager specifies the key file. */
  readonly masterKeyFrom?: 'setting' | 'credential' | 'default' | undefined;
};

/**
 * Throws OperatorError if the database is missing or empty but a vault existed. A key file that a setting specifies may
 * be meant for a new vault; one in the default place was created with a database.
 */
export function refuseLostVault({ dataDir, masterKeyFile, masterKeyFrom }: VaultPlaces): void {
  const database = DatabaseFile.in(dataDir);
  const { path } = database;
  if (database.hasContent()) return;
  database.refuseLeftLog();
  const state = existsSync(path) ? 'empty' : 'missing';
  const lost = (evidence: string, more = '') =>
    new OperatorError(`the database ${path} is ${state}, but ${evidence}`, {
      hint: database.lostAdvice + more,
    });
  const mark = markPath(path);
  const isOwnKey =
    (masterKeyFrom ?? 'default') === 'default' && dirname(realPath(masterKeyFile)) === realPath(dataDir);
  const isBegun = existsSync(beginningPath(dataDir));
  const remains = hasContent(mark)
    ? mark
    : isOwnKey && !isBegun && existsSync(masterKeyFile)
      ? masterKeyFile
      : undefined;
  // Another process may have created the vault meanwhile.
  if (remains === undefined || database.hasContent()) return;
  if (remains === mark) throw lost(`its mark ${mark} exists`);
  throw lost(
    `its master key ${masterKeyFile} exists`,
    `\n  To create a new vault with this key, name it: --master-key-file ${masterKeyFile}`,
  );
}

/** Throws OperatorError if the directory holds no vault, or a vault that lost its database. */
export function requireVault(places: VaultPlaces): void {
  if (hasDatabase(places.dataDir)) return;
  refuseLostVault(places);
  throw new OperatorError(`no vault in ${places.dataDir}`, {
    hint: 'Start "vault serve" to create one, or use --data-dir to name another directory.',
  });
}

/**
 * Whether the directory holds a database that is not empty. Throws OperatorError if this user cannot read it, or if it
 * is not a directory, for which `DatabaseFile.hasContent` is false.
 */
export function hasDatabase(dataDir: string): boolean {
  try {
    return statSync(DatabaseFile.in(dataDir).path).size > 0;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw new OperatorError(`cannot read the vault in ${dataDir}: ${describeSystemError(error)}`, {
      hint: 'Run the command as the user that owns the vault, or use --data-dir to name another directory.',
      cause: error,
    });
  }
}

/** Where the unit of `vault systemd-unit` records after the first start that the vault exists. */
const unitEnvironmentFile = '/etc/certificate-vault.env';

/** The error for a missing vault that must not be created: its directory may be mistyped or not mounted. */
export function creationRefused(dataDir: string): OperatorError {
  return new OperatorError(`no vault in ${dataDir}, and --no-create does not allow a new one`, {
    hint:
      'Mount the disk of the data directory, or correct --data-dir.\n' +
      '  To create a vault there, start once without --no-create, CERTVAULT_NO_CREATE or no_create in vault.yaml.\n' +
      `  The systemd unit sets it in ${unitEnvironmentFile} after the first start. Nothing was changed.`,
  });
}

/** Records that a vault is being created, before its key is: a kill in between then loses nothing. */
export function beginVault(dataDir: string): void {
  closeSync(openSync(beginningPath(dataDir), 'a', 0o600));
  syncPath(dataDir);
}

/** Removes that record once the database exists, and drafts left by a failing disk. Throws StorageError. */
export function endBeginning(dataDir: string): void {
  const note = beginningPath(dataDir);
  if (!existsSync(note)) return;
  DatabaseFile.in(dataDir).removeDrafts();
  try {
    removeFile(note);
  } catch (error) {
    throw new StorageError(`cannot remove ${note}: ${describeSystemError(error)}`, {
      hint: 'The vault was created. Check the disk (permissions, kernel log), then start again.',
      cause: error,
    });
  }
}

function beginningPath(dataDir: string): string {
  return join(dataDir, 'vault.creating');
}
