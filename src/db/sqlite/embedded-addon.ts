/**
 * Loads SQLite out of the executable. The operating system takes native code only from a file, so the embedded bytes
 * become one for a moment: made afresh, readable by nobody else, trusted from nowhere and gone before the first query.
 */
import { closeSync, existsSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { isAbsolute, join } from 'node:path';
import { OperatorError } from '../../base/operator-error.ts';

/** Linux names the open files of a process here, also those that no directory names any more. */
const openFiles = '/proc/self/fd';

const lent = new Set<string>();

/**
 * Names one more directory, tried after the usual ones: that of the database, which must be writable anyway. In a
 * container with a read-only file system it is often the only one.
 */
export function lendDirectory(directory: string): void {
  lent.add(directory);
}

/**
 * What the native addon with these bytes exports. Throws OperatorError, with the reason of every place that was tried,
 * where none lets a file be written and its code be run.
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
 * First where the operator says (TMPDIR) or the system has temporary files; then what systemd made for the service or
 * the user; then places that are usually there when /tmp is full, read-only or noexec.
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

/** The file loses its name while it is still empty: nobody can exchange it, and a kill leaves no copy behind. */
function loadNameless(addon: object, path: string, bytes: Uint8Array): void {
  const descriptor = openSync(path, 'wx', 0o700);
  try {
    rmSync(path);
    writeFileSync(descriptor, bytes);
    process.dlopen(addon, `${openFiles}/${descriptor}`);
  } finally {
    closeSync(descriptor);
  }
}

function remove(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    // Windows keeps a library that is in use; the system's own cleaning of temporary files gets it later.
  }
}

/** What the system said, without the temporary names that mean nothing to the reader. */
function reason(error: unknown): string {
  const message = String((error as Error).message);
  const pathAt = message.endsWith("'") ? message.search(/, [a-z]+ '/) : -1;
  return (pathAt === -1 ? message : message.slice(0, pathAt)).replace(
    /^\S*(\/proc\/self\/fd\/\d+|sqlite\.node): /,
    '',
  );
}
