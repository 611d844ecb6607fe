/** Age of the last backup, kept in the database so that the server also sees backups made on the command line. */
import type { Reader } from '../../db/database.ts';
import { readSetting } from '../../db/tables/settings.ts';
import type { TimedContext } from '../contexts.ts';

/** The time (UTC milliseconds) up to which the last backup holds everything, or undefined if there is none. */
export async function lastBackupAt(reader: Reader): Promise<number | undefined> {
  const at = await readSetting(reader, 'last-backup-at');
  return typeof at === 'number' ? at : undefined;
}

/** Milliseconds since the last backup, or undefined if there is none; 0 if the clock was set back since. */
export async function backupAge({ db, world }: TimedContext): Promise<number | undefined> {
  const at = await lastBackupAt(db.reader);
  return at === undefined ? undefined : Math.max(0, world.now() - at);
}
