/** Writes files that only their owner can read: all of them or none, each under a draft name until it is complete. */
import {
  closeSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDurableDirectory, removeFile, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';

/** A file to write; messages call it `name`. */
export type PrivateFile = {
  readonly name: string;
  readonly path: string;
  readonly content: string | Buffer;
};

/** Throws OperatorError if the path exists and is not a directory. */
export function refuseOtherThanDirectory(path: string): void {
  if (statOrThrow(path, statSync)?.isDirectory() !== false) return;
  throw new OperatorError(`${path} is not a directory`, {
    hint: 'Choose another name with --out. Nothing was written.',
  });
}

/**
 * Writes the files with mode 0600 into the directory, which is created if it is missing. Files that have this content
 * and mode already stay as they are. Returns the names of the files written. Throws OperatorError, having written
 * nothing, if a file has other content and `existing` is `refuse`, or if one cannot be written.
 */
export function writePrivateFiles(
  world: Pick<World, 'randomBytes'>,
  directory: string,
  files: readonly PrivateFile[],
  existing: 'refuse' | 'replace',
): string[] {
  const states = files.map((file) => ({ file, state: stateOf(file) }));
  const others = states.filter(({ state }) => state === 'other').map(({ file }) => file.name);
  if (others.length > 0 && existing === 'refuse') {
    throw new OperatorError(`${directory} holds other content: ${others.join(', ')}`, {
      hint: 'Use --force to replace these files, or another directory. Nothing was written.',
    });
  }
  const due = states.filter(({ state }) => state !== 'same').map(({ file }) => file);
  const suffix = world.randomBytes(8).toString('hex');
  const drafted: { readonly draft: string; readonly path: string }[] = [];
  try {
    makeDurableDirectory(directory);
    for (const { name, path, content } of due) {
      const draft = join(dirname(path), `.${name}.${suffix}.draft`);
      drafted.push({ draft, path });
      writeDraft(draft, content);
    }
    for (const { draft, path } of drafted) renameSync(draft, path);
    if (due.length > 0) syncPath(directory);
  } catch (error) {
    for (const { draft } of drafted) removeFile(draft);
    throw new OperatorError(`cannot write to ${directory}: ${describeSystemError(error)}`, {
      hint: 'Use a directory that this user can write to, with free space.',
      cause: error,
    });
  }
  return due.map(({ name }) => name);
}

function writeDraft(path: string, content: string | Buffer): void {
  const file = openSync(path, 'wx', 0o600);
  try {
    writeFileSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** `same` also has the mode; a link or a device counts as other content. */
function stateOf({ path, content }: PrivateFile): 'absent' | 'same' | 'exposed' | 'other' {
  const stats = statOrThrow(path, lstatSync);
  if (stats === undefined) return 'absent';
  if (stats.isDirectory()) {
    throw new OperatorError(`${path} is a directory`, { hint: 'Move it away. Nothing was written.' });
  }
  const expected = typeof content === 'string' ? Buffer.from(content) : content;
  if (!stats.isFile() || stats.size !== expected.length) return 'other';
  if (!contentOf(path).equals(expected)) return 'other';
  return (stats.mode & 0o777) === 0o600 ? 'same' : 'exposed';
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw unreadable(path, error);
  }
}

function statOrThrow(
  path: string,
  stat: (path: string, options: { throwIfNoEntry: false }) => Stats | undefined,
): Stats | undefined {
  try {
    return stat(path, { throwIfNoEntry: false });
  } catch (error) {
    throw unreadable(path, error);
  }
}

function unreadable(path: string, cause: unknown): OperatorError {
  return new OperatorError(`cannot read ${path}: ${describeSystemError(cause)}`, {
    hint: 'Choose another directory with --out. Nothing was written.',
    cause,
  });
}
