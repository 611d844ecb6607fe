/** What `vault doctor` looks at before a vault is opened: settings' places, the rights on them, the disk, the database file. */
import { accessSync, constants, existsSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { type Finding, findingFrom } from '../../domain/doctor/finding.ts';
import { spaceState } from '../../domain/health/disk-space.ts';
import { examineVaultDatabase, refuseUnsafePlace } from '../../domain/presence/vault-database.ts';
import { requireVault } from '../runtime/open-vault.ts';
import type { Settings } from '../settings/settings.ts';
import { refuseExposedVault } from '../terminal/private-files.ts';

const mebibyte = 1024 * 1024;

/** With less than this the next writes may fail. */
const leastFree = 64 * mebibyte;

/** With less of the disk than this, and less than a gibibyte, somebody should look. */
const lowShare = 0.1;
const lowFree = 1024 * mebibyte;

/** The write-ahead log is folded in at 4 MiB; one of this size has a reader who does not end. */
const largestLog = 256 * mebibyte;

export type Places = {
  /** In the order in which they build on each other; where one failed, the next ones may be missing. */
  readonly findings: readonly Finding[];
  /** Whether the vault can be opened, and without a change to it. */
  readonly canBeOpened: boolean;
};

export function inspectPlaces(settings: Settings): Places {
  const { dataDir, backups } = settings;
  const path = join(dataDir, 'vault.db');
  const permissions = permissionFinding(settings);
  const disks = [
    ...diskFindings(dataDir, 'the data directory', settings.audit.lowSpace),
    ...(backups === undefined ? [] : backupFindings(backups.directory)),
  ];
  if (permissions.status === 'failed') return { findings: [permissions, ...disks], canBeOpened: false };
  const { findings, canBeOpened } = inspectDatabase(path);
  return { findings: [permissions, ...disks, ...findings, ...keyFileFindings(settings)], canBeOpened };
}

function permissionFinding(settings: Settings): Finding {
  const check = 'permissions';
  try {
    refuseExposedVault(settings, 'refuse');
    refuseUnsafePlace(settings.dataDir);
    requireVault(settings);
    return { check, status: 'ok', message: `${settings.dataDir} is this user's alone` };
  } catch (error) {
    return findingFrom(error, check);
  }
}

/** `lowBelow` bytes are those of --low-disk-space, where the setting is about this place. */
function diskFindings(path: string, what: string, lowBelow = 0): Finding[] {
  if (!existsSync(path)) return [];
  const check = 'disk';
  const { bavail, blocks, bsize, ffree, files } = statfsSync(path);
  const free = bavail * bsize;
  const share = blocks === 0 ? 1 : bavail / blocks;
  const hint = 'Free some space, or move the directory to a larger disk.';
  const room = `${sized(free)} (${Math.floor(share * 100)} %) are free for ${what}`;
  if (free < leastFree) return [{ check, status: 'failed', about: path, message: `only ${room}`, hint }];
  if (files > 0 && ffree < 100) {
    const message = `only ${ffree} more files can be made for ${what}`;
    return [{ check, status: 'failed', about: path, message, hint }];
  }
  const state = spaceState(free, lowBelow);
  if (state !== 'ok') {
    const then =
      state === 'critical' ? '; refused requests are only counted' : '; with none left, downloads stop';
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
        message: `no backup can be written to ${directory}: ${(error as Error).message}`,
        hint: 'Make the directory, or let the user of the vault write to it.',
      },
    ];
  }
}

/** If a command provides the key, a key file left from an earlier setup would leak it with the disk. */
function keyFileFindings({ dataDir, masterKeyCommand }: Settings): Finding[] {
  const path = join(dataDir, 'master.key');
  if (masterKeyCommand === undefined || !existsSync(path)) return [];
  const message = `${path} is still there, although a command gives the master key`;
  const hint = 'Move it to where you keep a copy of the key, away from this machine.';
  return [{ check: 'master-key', status: 'warning', message, hint }];
}

function inspectDatabase(path: string): Places {
  const check = 'database';
  try {
    const { bytes, logBytes, isCurrent } = examineVaultDatabase(path);
    if (!isCurrent) {
      const message = 'it was written by an older vault';
      const hint = '"vault serve" of this version upgrades it, after it has copied it.';
      return { findings: [{ check, status: 'warning', message, hint }], canBeOpened: false };
    }
    if (logBytes > largestLog) {
      const message = `its write-ahead log has ${sized(logBytes)}`;
      const hint = 'A program reads the database and does not end: find it with "lsof", and end it.';
      return { findings: [{ check, status: 'warning', message, hint }], canBeOpened: true };
    }
    const message = `every page is whole (${sized(bytes)})`;
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
