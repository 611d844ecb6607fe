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
    `the database in ${dataDir} is on a network file system (${type}), where two processes can damage it`,
    {
      hint:
        'Locks and shared memory do not work there as on a local disk. Stop the vault, copy the directory to a local disk\n' +
        `  (cp -a ${dataDir} /var/lib/vault), and name that with --data-dir. Backups may lie on a network file system.\n` +
        '  Nothing was changed.',
    },
  );
}
