/** The files below assets/: embedded in the executable, on disk when the sources run. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getRawAsset, isSea } from 'node:sea';

/** The text of an asset by its path below assets/. Throws where there is none: a bug of the build. */
export function readAsset(path: string): string {
  const bytes = isSea()
    ? Buffer.from(getRawAsset(`assets/${path}`))
    : readFileSync(join(import.meta.dirname, '..', '..', 'assets', path));
  return bytes.toString('utf8');
}
