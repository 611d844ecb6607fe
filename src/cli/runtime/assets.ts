/**
 * Reads the files of assets/ and the built console: embedded in the executable, or from disk when running from source.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { getAssetKeys, getRawAsset, isSea } from 'node:sea';

/** The text of an asset by its path below assets/. Throws if it does not exist, which is a bug in the build. */
export function readAsset(path: string): string {
  const bytes = isSea()
    ? Buffer.from(getRawAsset(`assets/${path}`))
    : readFileSync(join(import.meta.dirname, '..', '..', '..', 'assets', path));
  return bytes.toString('utf8');
}

/**
 * The client installer: each part in the place of the line of assets/install.sh that reads it, without the comments of
 * that file, and with the version of the vault that serves it. Throws like `readAsset`.
 */
export function readInstaller(version = ''): string {
  const source = readAsset('install.sh').replaceAll(/^# .*\n/gm, '');
  return source
    .replaceAll(/^\. "[^"}]+\}([^"]+)"\n/gm, (_, part: string) => readAsset(part))
    .replace("\nclient_version=''\n", `\nclient_version='${version}'\n`);
}

/** The licenses collected by the build; undefined when running from source without a build. */
export function readLicenses(): string | undefined {
  if (isSea()) return Buffer.from(getRawAsset('licenses.txt')).toString('utf8');
  const path = join(import.meta.dirname, '..', '..', '..', 'build', 'licenses.txt');
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

const consoleFolder = 'console/';

/** The built console by file name. When running from source: the last output of build-console.mjs, or nothing. */
export function readConsole(): ReadonlyMap<string, Buffer> {
  if (isSea()) {
    const keys = getAssetKeys().filter((key) => key.startsWith(consoleFolder));
    return new Map(keys.map((key) => [key.slice(consoleFolder.length), Buffer.from(getRawAsset(key))]));
  }
  const folder = join(import.meta.dirname, '..', '..', '..', 'build', 'console');
  if (!existsSync(folder)) return new Map();
  return new Map(readdirSync(folder).map((name) => [name, readFileSync(join(folder, name))]));
}
