/** Files that exist and are not empty: an empty one may be left by a process that was killed. */
import { statSync } from 'node:fs';

/** Whether there is a file at `path` that is not empty. Throws the error of the system if that is unknown. */
export function hasContent(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}
