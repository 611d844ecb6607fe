/**
 * The files that the secrets of new API keys are written to: mode 0600, never overwritten. Each is a draft beside its place
 * before the key is stored, and gets its name afterwards, so that a kill in between loses no secret: the next run finds it.
 * The transaction that stores a key looks whether its draft is there: under the write lock, no other run takes it for one
 * that was left behind.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { syncPath } from '../../../base/durable-file.ts';
import { OperatorError } from '../../../base/operator-error.ts';
import type { Secret } from '../../../base/secret.ts';
import { isStoredKey } from '../../../domain/access/api-keys.ts';
import type { DatabaseContext } from '../../../domain/contexts.ts';

/** What is wrong with a place for a new secret, or undefined. */
export function complaintAboutKeyFile(path: string): string | undefined {
  if (existsSync(path)) return `the file ${path} exists already, and is never overwritten`;
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  return folder?.isDirectory() === true ? undefined : `there is no directory ${dirname(path)}`;
}

/**
 * Writes the secrets beside their places, before the transaction that stores the keys: a slow disk must not hold up those
 * who wait for its lock. Throws OperatorError where that is not possible, and leaves none there then.
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

/** Throws OperatorError where a draft is gone. Called in the transaction that stores the keys. */
export function requireDrafts(paths: Iterable<string>): void {
  for (const path of paths) {
    if (existsSync(draftOf(path))) continue;
    throw new OperatorError(`another run of "vault apply" removed ${draftOf(path)}`, {
      hint: 'Run it again.',
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
    throw new OperatorError(`${path} cannot be written: ${(error as Error).message}`, {
      hint: 'Name a file in a directory that this user may write to. Nothing was changed.',
      cause: error,
    });
  }
}

/**
 * Gives drafts their names, once the keys are stored. Throws OperatorError where another file took one meanwhile; the draft
 * stays then.
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
  // Another run has found it in between.
  if (draft === undefined && there !== undefined) return;
  try {
    // A run that was killed may have given the name already.
    const isNamed = there !== undefined && there.ino === draft?.ino;
    if (!isNamed) linkSync(draftOf(path), path);
    unlinkSync(draftOf(path));
    syncPath(dirname(path));
  } catch (error) {
    throw new OperatorError(`the new API key could not be moved to ${path}: ${(error as Error).message}`, {
      hint: `Its secret is in ${draftOf(path)}.`,
      cause: error,
    });
  }
}

function dropDraft(path: string): void {
  if (existsSync(draftOf(path))) unlinkSync(draftOf(path));
}

/**
 * Ends what an earlier run was killed in: the draft of a key that was stored gets its name, any other goes. Says whether
 * the file is there now.
 */
export async function recoverKeyFile({ db }: DatabaseContext, path: string): Promise<boolean> {
  if (!existsSync(draftOf(path))) return false;
  return db.write(async (writer) => {
    // The run whose draft it was may have ended while this one waited.
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
