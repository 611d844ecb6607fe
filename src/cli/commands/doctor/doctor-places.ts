/** What `vault doctor` checks before it opens the vault: directories, permissions, disk space and the database file. */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { judgePath } from '../../../base/paths/trusted-path.ts';
import { describeSystemError } from '../../../base/system-error.ts';
import { judgeBackups } from '../../../domain/backup/backup-place.ts';
import { type Finding, findingFrom } from '../../../domain/doctor/finding.ts';
import { pathFindings } from '../../../domain/doctor/path-findings.ts';
import { spaceState } from '../../../domain/health/disk-space.ts';
import { databaseIn, refuseUnsafePlace } from '../../../domain/instance/vault-database.ts';
import { requireVault } from '../../../domain/instance/vault-presence.ts';
import type { Settings } from '../../settings/settings.ts';
import { refuseExposedVault } from '../../terminal/private-files.ts';

const mebibyte = 1024 * 1024;

/** With less free space, the next writes may fail. */
const leastFree = 64 * mebibyte;

/** Warn below this share of the disk if less than a gibibyte is free, too. */
const lowShare = 0.1;
const lowFree = 1024 * mebibyte;

/** The log is checkpointed at 4 MiB; one of this size means that a reader blocks the checkpoint. */
const largestLog = 256 * mebibyte;

export type Places = {
  /** In order of dependency; findings after a failed one may be missing. */
  readonly findings: readonly Finding[];
  /** Whether the vault can be opened without changing it. */
  readonly canBeOpened: boolean;
};

export function inspectPlaces(settings: Settings): Places {
  const { dataDir } = settings;
  const permissions = permissionFinding(settings);
  const disks = diskFindings(dataDir, 'the data directory', settings.audit.lowSpace);
  if (permissions.status === 'failed') return { findings: [permissions, ...disks], canBeOpened: false };
  const { findings, canBeOpened } = settings.database === undefined ? inspectDatabase(dataDir) : onServer;
  return { findings: [permissions, ...disks, ...findings, ...keyFileFindings(settings)], canBeOpened };
}

/** Checks the directory of scheduled backups, if there is one. */
export async function inspectBackupPlace({ backups }: Settings): Promise<readonly Finding[]> {
  if (backups === undefined) return [];
  const { directory } = backups;
  return [...pathFindings(directory, await judgeBackups(directory)), ...backupFindings(directory)];
}

/**
 * Warns about files of the settings whose path other users can change. The vault reads them all the same: it checks
 * owner and mode of keys and passwords themselves, so others can only exchange them, or have the vault stop.
 */
export async function inspectSettingPaths(settings: Settings): Promise<readonly Finding[]> {
  const { tls, masterKeyPassphraseFile, metricsTokenFile, audit } = settings;
  const files = tls?.kind === 'files' ? [tls.certFile, tls.keyFile] : [];
  const paths = [...files, masterKeyPassphraseFile, metricsTokenFile, audit.syslogCaFile];
  const given = [...new Set(paths.filter((path): path is string => path !== undefined && path !== '-'))];
  const findings = await Promise.all(
    given.map(async (path) =>
      pathFindings(path, await judgePath(resolve(path), { what: 'the file', groups: 'all' })),
    ),
  );
  return findings.flat().map((finding) => ({ ...finding, status: 'warning' }));
}

function permissionFinding(settings: Settings): Finding {
  const check = 'permissions';
  try {
    refuseExposedVault(settings, 'refuse');
    if (settings.database === undefined) {
      refuseUnsafePlace(settings.dataDir);
      requireVault(settings);
    }
    return { check, status: 'ok', message: `only this user can access ${settings.dataDir}` };
  } catch (error) {
    return findingFrom(error, check);
  }
}

/** `lowBelow` is the --low-disk-space setting in bytes, if it applies to this path. */
function diskFindings(path: string, what: string, lowBelow = 0): Finding[] {
  if (!existsSync(path)) return [];
  const check = 'disk';
  const { bavail, blocks, bsize, ffree, files } = statfsSync(path);
  const free = bavail * bsize;
  const share = blocks === 0 ? 1 : bavail / blocks;
  const hint = 'Free disk space, or move the directory to a larger disk.';
  const room = `${sized(free)} (${Math.floor(share * 100)} %) free for ${what}`;
  if (free < leastFree) return [{ check, status: 'failed', about: path, message: `only ${room}`, hint }];
  if (files > 0 && ffree < 100) {
    const message = `only ${ffree} inodes free for ${what}`;
    return [{ check, status: 'failed', about: path, message, hint }];
  }
  const state = spaceState(free, lowBelow);
  if (state !== 'ok') {
    const then =
      state === 'critical' ? '; refused requests are only counted' : '; downloads stop when the disk is full';
    const message = `only ${room}${then}`;
    return [{ check, status: state === 'critical' ? 'failed' : 'warning', about: path, message, hint }];
  }
  if (share < lowShare && free < lowFree)
    return [{ check, status: 'warning', about: path, message: `only ${room}`, hint }];
  return [{ check, status: 'ok', about: path, message: room }];
}

function backupFindings(directory: string): Finding[] {
  try {
    accessSync(directory, constants.W_OK | constants.X_OK);
    return diskFindings(directory, 'backups');
  } catch (error) {
    return [
      {
        check: 'disk',
        status: 'failed',
        about: directory,
        message: `cannot write backups to ${directory}: ${describeSystemError(error)}`,
        hint: 'Create the directory, and make it writable for the user that runs the vault.',
      },
    ];
  }
}

/** With --master-key-command, a key file left from an earlier setup would still expose the key. */
function keyFileFindings({ dataDir, masterKeyCommand }: Settings): Finding[] {
  const path = join(dataDir, 'master.key');
  if (masterKeyCommand === undefined || !existsSync(path)) return [];
  const message = `${path} still exists, although a command provides the master key`;
  const hint = 'Move it to the machine where you keep a copy of the key.';
  return [{ check: 'master-key', status: 'warning', message, hint }];
}

/** A database on a server is checked through a connection. */
const onServer: Places = { findings: [], canBeOpened: true };

function inspectDatabase(dataDir: string): Places {
  const check = 'database';
  try {
    const { bytes, logBytes, isCurrent } = databaseIn(dataDir).examine();
    if (!isCurrent) {
      const message = 'the database schema is from an older version of the vault';
      const hint = 'Start "vault serve" of this version; it copies the database, then upgrades it.';
      return { findings: [{ check, status: 'warning', message, hint }], canBeOpened: false };
    }
    if (logBytes > largestLog) {
      const message = `the write-ahead log has grown to ${sized(logBytes)}`;
      const hint = 'A long-running reader blocks its checkpoint. Find the program with "lsof" and stop it.';
      return { findings: [{ check, status: 'warning', message, hint }], canBeOpened: true };
    }
    const message = `all pages are intact (${sized(bytes)})`;
    return { findings: [{ check, status: 'ok', message }], canBeOpened: true };
  } catch (error) {
    return { findings: [findingFrom(error, check)], canBeOpened: false };
  }
}

function sized(bytes: number): string {
  const size = bytes / mebibyte;
  if (size >= 10 * 1024) return `${(size / 1024).toFixed(0)} GiB`;
  return `${size.toFixed(size < 10 ? 1 : 0)} MiB`;
}
