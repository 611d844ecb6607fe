/** This very program, to be started again as another process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isSea } from 'node:sea';

/** Also when a newer executable has taken the place of the one that runs. */
const self = '/proc/self/exe';

export type OwnProgram = {
  /** The executable, or the Node that runs the sources. */
  readonly path: string;
  /** What stands before the arguments. */
  readonly script: readonly string[];
};

export function ownProgram(): OwnProgram {
  return {
    path: existsSync(self) ? self : process.execPath,
    script: isSea() ? [] : [join(import.meta.dirname, '..', 'main.ts')],
  };
}
