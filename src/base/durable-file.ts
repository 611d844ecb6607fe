/** Files that must survive the loss of power: a new name is durable only when its directory is. */
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
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
  const first = mkdirSync(whole, { recursive: true, mode: 0o700 }) ?? whole;
  for (let made = whole; ; made = dirname(made)) {
    syncIfReadable(dirname(made));
    if (made === resolve(first) || made === dirname(made)) return;
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
