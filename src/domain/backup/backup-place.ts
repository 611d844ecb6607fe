/** The directory of backups as a place that other users must not be able to change. */
import { type Judged, judgePath, refuseUntrusted } from '../../base/paths/trusted-path.ts';

/**
 * SQLite opens a draft by its path, again and again: others who can rename it would receive the copy, or have the vault write
 * elsewhere. What a group may do with the directories above is left to `vault doctor`.
 */
const use = { what: 'the backup directory', groups: 'above' } as const;

/** Throws OperatorError, with the command that fixes it, if other users can change the directory or its path. */
export async function refuseForeignBackups(directory: string): Promise<void> {
  await refuseUntrusted(directory, use);
}

/** What other users can change on the path of the directory. */
export function judgeBackups(directory: string): Promise<Judged> {
  return judgePath(directory, use);
}
