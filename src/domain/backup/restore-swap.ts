/**
 * Replaces a vault with the restored one: database and master key together, even if the process is killed in between.
 * A note lists the moves. Without it the old vault is valid; with it, the next process that opens the vault completes them.
 */
import { closeSync, existsSync, linkSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { removeFile, syncPath } from '../../base/durable-file.ts';
import { hasContent } from '../../base/file-content.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { describeFileError } from '../../base/system-error.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import { placeOf } from './restore-drafts.ts';

const noteName = 'restore.pending';

const noteSchema = z.strictObject({
  moves: z.array(z.strictObject({ from: z.string(), to: z.string() })),
});

/** A complete file, and its final name. */
export type Move = { readonly from: string; readonly to: string };

/**
 * Keeps what has the names now under `<name>.before-restore-<stamp>`, then gives the new files their names. `held` is the
 * old database. Returns what was kept.
 */
export function swapIn(
  dataDir: string,
  moves: readonly Move[],
  { state }: ReturnType<DatabaseFile['hold']>,
  stamp: string,
): string[] {
  const database = new DatabaseFile(placeOf(DatabaseFile.in(dataDir).path));
  // A log that stays behind would be taken for the new database's. Of a whole one everything is in the file already.
  const logs = state === 'damaged' ? database.companions : [];
  const kept = [...moves.map(({ to }) => to), ...logs].filter(hasContent).map((path) => {
    const name = `${path}.before-restore-${stamp}`;
    linkSync(path, name);
    return name;
  });
  for (const path of kept.map(dirname)) syncPath(path);
  for (const path of logs) removeFile(path);
  writeNote(dataDir, moves, stamp);
  finishRestore(dataDir);
  return kept;
}

/**
 * Keeps the log of a database that is missing or empty under a name of its own: the engine deletes what it finds beside an empty
 * file. Returns the names.
 */
export function setAsideLostLog(database: DatabaseFile, stamp: string): string[] {
  if (database.hasContent() || database.leftLog() === undefined) return [];
  const logs = database.companions.filter(hasContent);
  const kept = logs.map((path) => `${path}.before-restore-${stamp}`);
  for (const [index, path] of logs.entries()) renameSync(path, kept[index] ?? path);
  syncPath(dirname(database.path));
  return kept;
}

/** Completes a restore that was cut off; does nothing where there is none. Two processes may do it at once. */
export function finishRestore(dataDir: string): void {
  const path = join(dataDir, noteName);
  try {
    const note = noteAt(path);
    if (note === undefined) return;
    for (const { from, to } of movesIn(note, path)) {
      unlessDone(resolve(dataDir, to), () => renameSync(resolve(dataDir, from), resolve(dataDir, to)));
      syncPath(dirname(resolve(dataDir, to)));
    }
    removeFile(path);
    syncPath(dataDir);
  } catch (error) {
    const reason = describeFileError(error);
    throw new OperatorError(`cannot complete an interrupted restore: ${reason}`, {
      hint: `Run the command as the user that owns the data directory. ${path} lists the remaining steps.`,
      cause: error,
    });
  }
}

function noteAt(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // Another process may have just completed the same restore.
    if (!existsSync(path)) return undefined;
    throw error;
  }
}

function movesIn(note: string, path: string): readonly Move[] {
  try {
    return noteSchema.parse(JSON.parse(note)).moves;
  } catch (cause) {
    throw new Error(`${path} is damaged`, { cause });
  }
}

/** It appears whole or not at all, and never in place of another. */
function writeNote(dataDir: string, moves: readonly Move[], stamp: string): void {
  const draft = join(dataDir, `${noteName}-${stamp}`);
  const note = join(dataDir, noteName);
  const inside = (path: string) => (dirname(path) === dataDir ? relative(dataDir, path) : path);
  const said = moves.map(({ from, to }) => ({ from: inside(from), to: inside(to) }));
  closeSync(openSync(draft, 'wx', 0o600));
  try {
    writeFileSync(draft, JSON.stringify({ moves: said }));
    syncPath(draft);
    linkSync(draft, note);
    syncPath(dataDir);
  } finally {
    removeFile(draft);
  }
}

/**
 * Ignores a rename that another process has already done. If neither name exists, a disk may be missing: then stop, or the
 * database would be restored without its key.
 */
function unlessDone(to: string, rename: () => void): void {
  try {
    rename();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !existsSync(to)) throw error;
  }
}
