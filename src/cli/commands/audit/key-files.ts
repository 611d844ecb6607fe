/**
 * The files for the secrets of new API keys: mode 0600, never overwritten. Each secret is written to a draft before its
 * key is stored, and renamed afterwards. If the process is killed in between, the next run finds the draft, so no
 * secret is lost. The transaction that stores a key checks that its draft still exists, because another run may have
 * removed it.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { removeFile, syncPath } from '../../../base/durable-file.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import type { Secret } from '../../../base/secret.ts';
import { describeSystemError } from '../../../base/system-error.ts';
import { isStoredKey } from '../../../domain/access/authentication.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';

/** Why a new secret cannot be written to this path, or undefined. */
export function keyFileIssue(path: string): string | undefined {
  if (existsSync(path)) return `the file ${path} already exists and is not overwritten`;
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  return folder?.isDirectory() === true ? undefined : `no such directory: ${dirname(path)}`;
}

/**
 * Writes the secrets to drafts, before the transaction that stores the keys, so that a slow disk does not hold its
 * lock. Throws OperatorError if a draft cannot be written, after removing the others.
 */
export function draftKeyFiles(secrets: ReadonlyMap<string, Secret<string>>): void {
  const drafted: string[] = [];
  try {
    for (const [path, raw] of secrets) {
      draftKeyFile(path, raw);
      drafted.push(path);
    }
  } catch (error) {
    for (const path of drafted) dropDraft(path);
    throw error;
  }
}

/** Throws OperatorError if a draft is missing. Called in the transaction that stores the keys. */
export function requireDrafts(paths: Iterable<string>): void {
  for (const path of paths) {
    if (existsSync(draftOf(path))) continue;
    throw new OperatorError(`another run of "vault apply" removed ${draftOf(path)}`, {
      hint: 'Run "vault apply" again.',
    });
  }
}

function draftKeyFile(path: string, raw: Secret<string>): void {
  try {
    const file = openSync(draftOf(path), 'wx', 0o600);
    try {
      writeSync(file, `${raw.expose()}\n`);
      fsyncSync(file);
      syncPath(dirname(path));
    } catch (error) {
      dropDraft(path);
      throw error;
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new OperatorError(`cannot write ${path}: ${describeSystemError(error)}`, {
      hint: 'Use a directory that this user can write to. Nothing was changed.',
      cause: error,
    });
  }
}

/**
 * Renames the drafts once the keys are stored. Throws OperatorError if another file has taken the name; the draft then
 * stays.
 */
export async function publishKeyFiles({ db }: DatabaseContext, paths: Iterable<string>): Promise<void> {
  const published = [...paths];
  if (published.length === 0) return;
  await db.write(async () => {
    for (const path of published) publishKeyFile(path);
  });
}

function publishKeyFile(path: string): void {
  const there = statSync(path, { throwIfNoEntry: false });
  const draft = statSync(draftOf(path), { throwIfNoEntry: false });
  // Another run has published it already.
  if (draft === undefined && there !== undefined) return;
  try {
    // A killed run may have linked it already.
    const isNamed = there !== undefined && there.ino === draft?.ino;
    if (!isNamed) linkSync(draftOf(path), path);
    removeFile(draftOf(path));
    syncPath(dirname(path));
  } catch (error) {
    throw new OperatorError(`cannot move the new API key to ${path}: ${describeSystemError(error)}`, {
      hint: `The secret is in ${draftOf(path)}.`,
      cause: error,
    });
  }
}

function dropDraft(path: string): void {
  removeFile(draftOf(path));
}

/**
 * Recovers from a killed run: renames the draft if its key was stored, and removes the draft otherwise. Returns whether
 * the file exists now.
 */
export async function recoverKeyFile({ db }: DatabaseContext, path: string): Promise<boolean> {
  if (!existsSync(draftOf(path))) return false;
  return db.write(async (writer) => {
    // The run that wrote the draft may have finished while this one waited for the lock.
    if (!existsSync(draftOf(path))) return false;
    if (!(await isStoredKey(writer, readFileSync(draftOf(path), 'utf8').trim()))) {
      dropDraft(path);
      return false;
    }
    publishKeyFile(path);
    return true;
  });
}

function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.draft`);
}
