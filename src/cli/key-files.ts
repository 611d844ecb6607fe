/**
 * The files that the secrets of new API keys are written to: mode 0600, never overwritten. Each is a draft beside its place
 * before the key is stored, and gets its name afterwards, so that a kill in between loses no secret: the next run finds it.
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
import { OperatorError } from '../base/operator-error.ts';
import type { Secret } from '../base/secret.ts';
import { readToken, tokenMatches } from '../crypto/api-key-token.ts';
import { findApiKeyByPrefix } from '../db/api-keys.ts';
import type { Vault } from '../domain/vault.ts';

/** What is wrong with a place for a new secret, or undefined. */
export function complaintAboutKeyFile(path: string): string | undefined {
  if (existsSync(path)) return `the file ${path} exists already, and is never overwritten`;
  const folder = statSync(dirname(path), { throwIfNoEntry: false });
  return folder?.isDirectory() === true ? undefined : `there is no directory ${dirname(path)}`;
}

/** Writes the secret beside its place. Throws OperatorError where that is not possible. */
export function draftKeyFile(path: string, raw: Secret<string>): void {
  try {
    const file = openSync(draftOf(path), 'wx', 0o600);
    try {
      writeSync(file, `${raw.expose()}\n`);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    syncFolder(path);
  } catch (error) {
    throw new OperatorError(`${path} cannot be written: ${(error as Error).message}`, {
      hint: 'Name a file in a directory that this user may write to. Nothing was changed.',
      cause: error,
    });
  }
}

/** Gives the draft its name. Throws OperatorError where another file took it meanwhile; the draft stays then. */
export function publishKeyFile(path: string): void {
  try {
    // A run that was killed may have given the name already.
    const isNamed = statSync(path, { throwIfNoEntry: false })?.ino === statSync(draftOf(path)).ino;
    if (!isNamed) linkSync(draftOf(path), path);
    unlinkSync(draftOf(path));
    syncFolder(path);
  } catch (error) {
    throw new OperatorError(`the new API key could not be moved to ${path}: ${(error as Error).message}`, {
      hint: `Its secret is in ${draftOf(path)}.`,
      cause: error,
    });
  }
}

export function dropDraft(path: string): void {
  if (existsSync(draftOf(path))) unlinkSync(draftOf(path));
}

/**
 * Ends what an earlier run was killed in: the draft of a key that was stored gets its name, any other goes. Says whether
 * the file is there now.
 */
export async function recoverKeyFile({ db }: Vault, path: string): Promise<boolean> {
  if (!existsSync(draftOf(path))) return false;
  const token = readToken(readFileSync(draftOf(path), 'utf8').trim());
  const key = token && (await findApiKeyByPrefix(db.reader, token.prefix));
  if (token === undefined || key === undefined || !tokenMatches(token, key.hash)) {
    dropDraft(path);
    return false;
  }
  publishKeyFile(path);
  return true;
}

function draftOf(path: string): string {
  return join(dirname(path), `.${basename(path)}.draft`);
}

function syncFolder(path: string): void {
  const folder = openSync(dirname(path), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
