/** Where commands find the vault if nothing names its data directory. */
import { existsSync, statSync } from 'node:fs';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import { databaseIn } from '../../domain/instance/vault-database.ts';
import type { Environment } from '../terminal/terminal.ts';

/** Where the unit of `vault systemd-unit` keeps its data. */
const serviceDataDir = '/var/lib/vault';

/**
 * The data directory of the service for root and for the user of the service, so that `sudo -u vault vault …` needs no
 * `--data-dir`, not even to restore a backup there. Other users have one below their home.
 */
export function defaultDataDir(environment: Environment): string {
  if (environment.STATE_DIRECTORY) return environment.STATE_DIRECTORY.split(':')[0] ?? '';
  const { uid } = userInfo();
  if (uid === 0 || ownerOf(databaseIn(serviceDataDir).path) === uid) return serviceDataDir;
  const own = join(
    environment.XDG_DATA_HOME || join(environment.HOME || homedir(), '.local', 'share'),
    'vault',
  );
  return ownerOf(serviceDataDir) === uid && !existsSync(databaseIn(own).path) ? serviceDataDir : own;
}

function ownerOf(path: string): number | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })?.uid;
  } catch {
    // Another user's directory.
    return undefined;
  }
}
