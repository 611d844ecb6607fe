/**
 * Replaces a vault with the restored one: database and master key together, even if the process is killed in between. A
 * note lists the moves. Without it the old vault is valid; with it, the next process that opens the vault completes
 * them.
 */
import { createHash } from 'node:crypto';
import {
  closeSync,
  existsSync,
  linkSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { removeFile, syncPath } from '../../base/durable-file.ts';
import { hasContent } from '../../base/file-content.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { quoted } from '../../base/paths/shell-word.ts';
import { describeFileError } from '../../base/system-error.ts';
import { DatabaseFile } from '../../db/database-file.ts';
import { placeOf } from './restore-drafts.ts';

const noteName = 'restore.pending';

const noteSchema = z.strictObject({
  moves: z.array(
    z.strictObject({
      from: z.string(),
      to: z.string(),
      /** Of the new file, in hexadecimal. Version 0.1.0 wrote only the names. */
      sha256: z.string().optional(),
      /** Where the old file is kept. */
      kept: z.string().optional(),
    }),
  ),
  /** The log of a damaged database: absent unless the old vault needs it. */
  logs: z.array(z.strictObject({ path: z.string(), kept: z.string() })).optional(),
});

type Note = z.output<typeof noteSchema>;
type NotedMove = Note['moves'][number];

/** A complete file, and its final name. */
export type Move = { readonly from: string; readonly to: string };

/**
 * Keeps the old files as `<name>.before-restore-<stamp>`, then gives the new files their names. `state` is that of the
 * old database. Returns the kept paths.
 */
export function swapIn(
  dataDir: string,
  moves: readonly Move[],
  { state }: ReturnType<DatabaseFile['hold']>,
  stamp: string,
): string[] {
  const database = new DatabaseFile(placeOf(DatabaseFile.in(dataDir).path));
  // A leftover log would be taken for the new database's. An intact database has everything in its file already.
  const logs = state === 'damaged' ? database.companions : [];
  const keptName = (path: string) => `${path}.before-restore-${stamp}`;
  const olds = [...moves.map(({ to }) => to), ...logs].filter(hasContent);
  for (const path of olds) linkSync(path, keptName(path));
  const kept = olds.map(keptName);
  for (const path of kept.map(dirname)) syncPath(path);
  for (const path of logs) removeFile(path);
  const noted = moves.map(({ from, to }) => ({
    ...{ from, to, sha256: digestOf(from) },
    ...(olds.includes(to) && { kept: keptName(to) }),
  }));
  const keptLogs = logs.filter((path) => olds.includes(path)).map((path) => ({ path, kept: keptName(path) }));
  writeNote(dataDir, { moves: noted, ...(keptLogs.length > 0 && { logs: keptLogs }) }, stamp);
  finishRestore(dataDir);
  return kept;
}

/**
 * Renames the log of a missing or empty database to keep it: the engine deletes files beside an empty one. Returns the
 * new names.
 */
export function setAsideLostLog(database: DatabaseFile, stamp: string): string[] {
  if (database.hasContent() || database.leftLog() === undefined) return [];
  const logs = database.companions.filter(hasContent);
  const kept = logs.map((path) => `${path}.before-restore-${stamp}`);
  for (const [index, path] of logs.entries()) renameSync(path, kept[index] ?? path);
  syncPath(dirname(database.path));
  return kept;
}

/** Whether a note lists moves, one of which a disk rejected. */
export function isRestorePending(dataDir: string): boolean {
  return existsSync(join(dataDir, noteName));
}

/** Completes an interrupted restore; does nothing if there is none. Two processes may do so concurrently. */
export function finishRestore(dataDir: string): void {
  const path = join(dataDir, noteName);
  let moves: readonly NotedMove[] = [];
  let logs: Note['logs'];
  try {
    const text = noteAt(path);
    if (text === undefined) return;
    const note = noteIn(text, path);
    logs = note.logs;
    moves = note.moves.map((move) => ({
      ...move,
      from: resolve(dataDir, move.from),
      to: resolve(dataDir, move.to),
    }));
    for (const move of moves) {
      // Another process may have completed it, and opened the vault.
      if (!isDone(move) && existsSync(path)) throw new Error(`${move.from} is missing`);
      syncPath(dirname(move.to));
    }
    removeFile(path);
    syncPath(dataDir);
  } catch (error) {
    const reason = describeFileError(error);
    throw new OperatorError(`cannot complete an interrupted restore: ${reason}`, {
      hint: `The next vault command, as the user that owns the data directory, completes it once the disk allows it.${wayBack(path, moves, logs)}`,
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

function noteIn(text: string, path: string): Note {
  try {
    return noteSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new Error(`${path} is damaged`, { cause });
  }
}

/** The note appears complete or not at all, and never replaces another. */
function writeNote(dataDir: string, { moves, ...rest }: Note, stamp: string): void {
  const draft = join(dataDir, `${noteName}-${stamp}`);
  const note = join(dataDir, noteName);
  const inside = (path: string) => (dirname(path) === dataDir ? relative(dataDir, path) : path);
  const said = moves.map((move) => ({ ...move, from: inside(move.from), to: inside(move.to) }));
  closeSync(openSync(draft, 'wx', 0o600));
  try {
    writeFileSync(draft, JSON.stringify({ moves: said, ...rest }));
    syncPath(draft);
    linkSync(draft, note);
    syncPath(dataDir);
  } finally {
    removeFile(draft);
  }
}

/**
 * Gives a new file its name, and returns whether it has it, also if another process was first. If the new file is
 * nowhere, a disk may be missing: then stop, or the database would be restored without its key. Throws system errors.
 */
function isDone({ from, to, sha256 }: NotedMove): boolean {
  try {
    renameSync(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !existsSync(to)) throw error;
    return sha256 === undefined || digestOf(to) === sha256;
  }
}

/** The commands that return to the old vault and remove the new one. */
function wayBack(note: string, moves: readonly NotedMove[], logs: Note['logs'] = []): string {
  if (moves.length === 0) return '';
  const files = moves.map(({ from, to, kept }) => {
    if (existsSync(from)) return `rm ${quoted(from)}`;
    return kept === undefined ? `rm ${quoted(to)}` : `cp ${quoted(kept)} ${quoted(to)}`;
  });
  const back = [...files, ...logs.map(({ path, kept }) => `cp ${quoted(kept)} ${quoted(path)}`)];
  return `\nTo return to the previous vault instead:\n  ${[`rm ${quoted(note)}`, ...back].join('\n  ')}`;
}

/** Reads a file of any size in pieces. */
function digestOf(path: string): string {
  const hash = createHash('sha256');
  const piece = Buffer.alloc(1_048_576);
  const descriptor = openSync(path, 'r');
  try {
    for (let read = -1; read !== 0; ) {
      read = readSync(descriptor, piece);
      hash.update(piece.subarray(0, read));
    }
  } finally {
    closeSync(descriptor);
  }
  return hash.digest('hex');
}
