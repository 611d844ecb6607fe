/**
 * Loads SQLite from the executable. The operating system loads native code only from files, so the embedded bytes are
 * written to a new private file, which is deleted before the first query.
 */
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { removeFile } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';

/** On Linux, lists the open files of a process, including deleted ones. */
const openFiles = '/proc/self/fd';

const lent = new Set<string>();

/** Path that the addon was loaded from. */
let loadedFrom: string | undefined;

/**
 * Adds a directory to try after the default ones: that of the database, which must be writable anyway. In a container
 * with a read-only file system it is often the only one.
 */
export function lendDirectory(directory: string): void {
  lent.add(directory);
}

/**
 * The exports of the native addon with these bytes. Throws OperatorError with the reason for each tried directory if
 * none can be written to and executed from.
 */
export function loadEmbeddedAddon(bytes: Uint8Array): unknown {
  const failures: string[] = [];
  for (const place of places()) {
    try {
      return loadFrom(place, bytes);
    } catch (error) {
      failures.push(`${place} (${reason(error)})`);
    }
  }
  throw new OperatorError(`cannot load SQLite from any directory: ${failures.join(', ')}`, {
    hint: 'Set TMPDIR to a directory that this user can write to and that is not mounted noexec.',
  });
}

/**
 * The path that the addon was loaded from, or undefined. The file no longer exists, but a thread that loads the same
 * path gets the same library. That is required: two copies of SQLite would drop each other's file locks.
 */
export function loadedAddonPath(): string | undefined {
  return loadedFrom;
}

/**
 * First the directory for temporary files (TMPDIR or the system's); then those that systemd created for the service or
 * the user; then directories that usually exist if /tmp is full, read-only or noexec.
 */
function places(): Set<string> {
  const { RUNTIME_DIRECTORY = '', XDG_RUNTIME_DIR = '' } = process.env;
  const all = [tmpdir(), ...RUNTIME_DIRECTORY.split(':'), XDG_RUNTIME_DIR, '/dev/shm', '/var/tmp', ...lent];
  return new Set(all.filter(isAbsolute));
}

function loadFrom(place: string, bytes: Uint8Array): unknown {
  const addon: { exports: unknown } = { exports: {} };
  const directory = mkdtempSync(join(place, 'certificate-vault-'));
  try {
    const path = join(directory, 'sqlite.node');
    if (existsSync(openFiles)) loadNameless(addon, path, bytes);
    else {
      writeFileSync(path, bytes, { flag: 'wx', mode: 0o700 });
      process.dlopen(addon, path);
    }
  } finally {
    remove(directory);
  }
  return addon.exports;
}

/** The file is unlinked while it is still empty: it cannot be replaced, and a kill leaves no copy behind. */
function loadNameless(addon: object, path: string, bytes: Uint8Array): void {
  const descriptor = openSync(path, 'wx', 0o700);
  try {
    removeFile(path);
    writeFileSync(descriptor, bytes);
    const loaded = `${openFiles}/${descriptor}`;
    process.dlopen(addon, loaded);
    loadedFrom = loaded;
  } finally {
    closeSync(descriptor);
  }
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // Windows does not delete a library that is in use; the system cleans up temporary files later.
  }
}

/** The error of the system, without the names of temporary files. */
function reason(error: unknown): string {
  return describeSystemError(error).replace(/^\S*(\/proc\/self\/fd\/\d+|sqlite\.node): /, '');
}
