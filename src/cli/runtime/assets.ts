/** The files below assets/, and the console built from there: embedded in the executable, on disk when the sources run. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getAssetKeys, getRawAsset, isSea } from 'node:sea';

/** The text of an asset by its path below assets/. Throws where there is none: a bug of the build. */
export function readAsset(path: string): string {
  const bytes = isSea()
    ? Buffer.from(getRawAsset(`assets/${path}`))
    : readFileSync(join(import.meta.dirname, '..', '..', '..', 'assets', path));
  return bytes.toString('utf8');
}

/** The licences that the build gathered; undefined where the sources run and nothing was ever built. */
export function readLicenses(): string | undefined {
  if (isSea()) return Buffer.from(getRawAsset('licenses.txt')).toString('utf8');
  const path = join(import.meta.dirname, '..', '..', '..', 'build', 'licenses.txt');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

const consoleFolder = 'console/';

/** The built console by file name. The sources take what build-console.mjs made last, and have none without it. */
export function readConsole(): ReadonlyMap<string, Buffer> {
  if (isSea()) {
    const keys = getAssetKeys().filter((key) => key.startsWith(consoleFolder));
    return new Map(keys.map((key) => [key.slice(consoleFolder.length), Buffer.from(getRawAsset(key))]));
  }
  const folder = join(import.meta.dirname, '..', '..', '..', 'build', 'console');
  if (!existsSync(folder)) return new Map();
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}
