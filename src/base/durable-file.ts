/** Files that must survive a power failure: a new name is durable only when its directory is. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
  unlinkSync,
} from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { day } from './duration.ts';

/** Makes the content of a file, or the entries of a directory, durable. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Creates a directory that only its owner can access, durably and with its missing parents. The name of an existing
 * directory is made durable as well, because its creator may have been killed before doing so.
 */
export function makeDurableDirectory(path: string): void {
  const whole = resolve(path);
  const first = makeWithParents(whole) ?? whole;
  for (let made = whole; ; made = dirname(made)) {
    syncIfReadable(dirname(made));
    if (made === resolve(first) || made === dirname(made)) return;
  }
}

/** The first directory that was created. */
function makeWithParents(path: string): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    // With `recursive`, Node reports any unexpected error as ENOENT, for example for a read-only disk. Creating a
    // single directory reveals the real one.
    let first = path;
    while (!existsSync(dirname(first))) first = dirname(first);
    mkdirSync(first, { mode: 0o700 });
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return first;
  }
}

/** Like `syncPath`, without holding up the event loop. */
export async function syncPathLater(path: string): Promise<void> {
  const file = await open(path, 'r');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Like `syncPath`, but ignores directories that this user may not read: their owner makes them durable. */
export function syncIfReadable(path: string): void {
  try {
    syncPath(path);
  } catch (error) {
    if (!/^(EACCES|EPERM)$/.test(String((error as NodeJS.ErrnoException).code))) throw error;
  }
}

/**
 * Files in a directory that match `isDraft` and have not been written for a day: left behind by a killed process. None
 * if the directory cannot be read.
 */
export function staleDrafts(directory: string, isDraft: (name: string) => boolean, now: number): string[] {
  let names: string[];
  try {
    names = readdirSync(directory).filter(isDraft);
  } catch {
    // Writing to the directory reports the problem.
    return [];
  }
  return names
    .map((name) => join(directory, name))
    .filter((path) => now - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now) > day);
}

/**
 * Removes a file if it exists. Throws the error of the system, with its code: `rmSync` of Node 26 reports one without
 * code and path if the disk fails.
 */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // A read-only disk also refuses to remove what does not exist.
    const isAbsent = code === 'ENOENT' || (code === 'EROFS' && !existsSync(path));
    if (!isAbsent) throw error;
  }
}
