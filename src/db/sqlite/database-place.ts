/** Where a database may lie: on a local file system. SQLite's log needs locks and shared memory that work (sqlite.org/wal.html). */
import { join } from 'node:path';
import { networkFileSystem } from '../../base/network-file-system.ts';
import { OperatorError } from '../../base/operator-error.ts';

/** Throws OperatorError where the database of the data directory is, or would be, on a network file system. */
export function refuseNetworkPlace(dataDir: string): void {
  // The file may be a link to another disk.
  const type = networkFileSystem(join(dataDir, 'vault.db'));
  if (type === undefined) return;
  throw new OperatorError(
    `the database in ${dataDir} is on a network file system (${type}), which can corrupt it`,
    {
      hint:
        'Locks and shared memory are unreliable there. Stop the vault, copy the directory to a local disk\n' +
        `  (cp -a ${dataDir} /var/lib/vault), and set --data-dir to it. Backups may be on a network file system.\n` +
        '  Nothing was changed.',
    },
  );
}
