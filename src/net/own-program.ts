/** This program, to start it again as another process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isSea } from 'node:sea';

/** Refers to the running executable even after a newer one has replaced it. */
const self = '/proc/self/exe';

/** The command that makes a scheduled backup (cli/serving/backup-process.ts); for internal use only. */
export const scheduledBackup = 'internal-backup';

export type OwnProgram = {
  /** The executable, or Node when running from source. */
  readonly path: string;
  /** Arguments that come first. */
  readonly script: readonly string[];
};

export function ownProgram(): OwnProgram {
  return {
    path: existsSync(self) ? self : process.execPath,
    script: isSea() ? [] : [join(import.meta.dirname, '..', 'main.ts')],
  };
}
