/** Writes a new file that only its owner can read, durably; an existing one is never replaced. */
import { closeSync, fsyncSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { removeFile, syncIfReadable } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeSystemError } from '../../base/system-error.ts';

/**
 * Writes the content with mode 0600 and returns what the file has then. Throws OperatorError if the file exists or
 * cannot be written; no part of it stays behind. No draft is used, because memory sticks have file systems without
 * links.
 */
export function writeNewPrivateFile(path: string, content: string): Buffer {
  const file = created(path);
  try {
    try {
      writeFileSync(file, content);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    syncIfReadable(dirname(resolve(path)));
    return readFileSync(path);
  } catch (error) {
    removeFile(path);
    throw cannotWrite(path, error);
  }
}

function created(path: string): number {
  try {
    return openSync(path, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw cannotWrite(path, error);
    throw new OperatorError(`${path} exists`, {
      hint: 'Choose another name, or move the file away. Nothing was changed.',
    });
  }
}

function cannotWrite(path: string, cause: unknown): OperatorError {
  return new OperatorError(`cannot write ${path}: ${describeSystemError(cause)}`, {
    hint: 'Choose a directory that this user can write to, with free space. Nothing was changed.',
    cause,
  });
}
