/** Files that must survive the loss of power: a new name is durable only when its directory is. */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { day } from './duration.ts';

/** Makes the content of a file, or the names in a directory, durable. */
export function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Makes a directory for its owner alone, durably, with those above that are missing. Where it is there already its name is
 * made durable too: whoever made it may have been killed before.
 */
export function makeDurableDirectory(path: string): void {
  const whole = resolve(path);
  const first = makeWithParents(whole) ?? whole;
  for (let made = whole; ; made = dirname(made)) {
    syncIfReadable(dirname(made));
    if (made === resolve(first) || made === dirname(made)) return;
  }
}

/** The first directory that was made. */
function makeWithParents(path: string): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    // So Node calls every reason that it does not expect, such as a read-only disk: of one directory it tells the true one.
    let first = path;
    while (!existsSync(dirname(first))) first = dirname(first);
    mkdirSync(first, { mode: 0o700 });
    mkdirSync(path, { recursive: true, mode: 0o700 });
    return first;
  }
}

/** As `syncPath`, for a directory that may be somebody else's: what may not be read there is made durable by whoever made it. */
export function syncIfReadable(path: string): void {
  try {
    syncPath(path);
  } catch (error) {
    if (!/^(EACCES|EPERM)$/.test(String((error as NodeJS.ErrnoException).code))) throw error;
  }
}

/**
 * The files in a directory that `isDraft` knows by their names and nobody has written for a day: left by somebody who was
 * killed. None where the directory cannot be read.
 */
export function staleDrafts(directory: string, isDraft: (name: string) => boolean, now: number): string[] {
  let names: string[];
  try {
    names = readdirSync(directory).filter(isDraft);
  } catch {
    // Whoever writes there is told what is wrong with it.
    return [];
  }
  return names
    .map((name) => join(directory, name))
    .filter((path) => now - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? now) > day);
}

/** Removes a database that nobody uses, with what SQLite may have left beside it. */
export function removeDatabase(path: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true });
}
