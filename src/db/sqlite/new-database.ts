/**
 * Creates databases: filled under a temporary name and published atomically, and never next to the log of a lost
 * database, because SQLite deletes a log that it finds next to an empty database.
 */
import {
  closeSync,
  linkSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  renameSync,
  statSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makeDurableDirectory, removeFile, syncPath } from '../../base/durable-file.ts';
import { hasContent } from '../../base/file-content.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { companionsOf, logOf } from './database-files.ts';
import { holdDatabase } from './database-lock.ts';

/** How long to wait for another process that creates or restores a database at the same path. */
const patienceMs = 5000;

/** Size of a journal header in bytes. A journal of this size has no pages: locking an empty file leaves one behind. */
const journalHeader = 512;

/** The path next to which SQLite keeps log and journal: the target of a symbolic link, even if it does not exist. */
export function linkedPath(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  try {
    return realpathSync(path);
  } catch {
    // The target of the link does not exist.
    return resolve(dirname(path), readlinkSync(path));
  }
}

/** The write-ahead log or journal next to a path that still contains data; undefined if neither does. */
export function leftLog(path: string): string | undefined {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const real = linkedPath(path);
  if (size(logOf(real)) > 0) return logOf(real);
  return size(`${real}-journal`) > journalHeader ? `${real}-journal` : undefined;
}

/** Throws OperatorError if the database at `path` is missing or empty but its log contains data. Changes nothing. */
export function refuseLeftLog(path: string): void {
  const log = hasContent(path) ? undefined : leftLog(path);
  if (log === undefined) return;
  const kib = Math.ceil(statSync(log).size / 1024);
  const state = statSync(path, { throwIfNoEntry: false }) === undefined ? 'missing' : 'empty';
  throw new OperatorError(
    `the database ${path} is ${state}, but its log ${log} contains ${kib} KiB of data`,
    {
      hint: lostDatabaseAdvice(path),
    },
  );
}

/** Advice about a lost database, which ends every refusal to create a new one in its place. */
export function lostDatabaseAdvice(path: string): string {
  const directory = dirname(path);
  return (
    `Put ${basename(path)} back, or restore a backup: vault restore FILE --replace --data-dir ${directory}\n` +
    `  To start a new vault instead, move the old files away: mv ${directory} ${directory}.old\n` +
    '  Nothing was changed.'
  );
}

/**
 * Creates the database at `path`, mode 0600, durably. `fill` turns the given empty file into a database and leaves it
 * closed. If several processes do this, one publishes its file and the others use it. Throws OperatorError if the log
 * of a lost database is next to the path.
 */
export async function createDatabase(
  path: string,
  world: World,
  fill: (draft: string) => Promise<void>,
): Promise<void> {
  refuseLeftLog(path);
  makeDurableDirectory(dirname(path));
  const draft = join(dirname(path), `${draftPrefix(path)}${world.randomBytes(8).toString('hex')}`);
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    await fill(draft);
    // The log is not published with it.
    if (leftLog(draft) !== undefined) throw new Error(`${draft} was left with a log`);
    syncPath(draft);
    await publish(draft, path, world);
    syncPath(dirname(path));
    removeDrafts(path);
  } catch (error) {
    // The first process removes the drafts of the others, which may notice this at any step.
    if (!hasContent(path)) throw error;
  } finally {
    for (const file of [draft, ...companionsOf(draft)]) removeIfPossible(file);
  }
}

const draftPrefix = (path: string) => `${basename(path)}.creating-`;

/**
 * Removes the drafts of the created database at `path`, including hard links to it, if the disk allows it. They are not
 * used after the creation; those of killed processes never were.
 */
export function removeDrafts(path: string): void {
  const directory = dirname(path);
  for (const name of readdirSync(directory).filter((name) => name.startsWith(draftPrefix(path)))) {
    removeIfPossible(join(directory, name));
  }
}

function removeIfPossible(path: string): void {
  try {
    removeFile(path);
  } catch {
    // The disk fails: its writer reports that, and the next start removes the draft.
  }
}

async function publish(draft: string, path: string, world: World): Promise<void> {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await replaceEmpty(draft, path, world);
  }
}

/** An empty file may be locked by a restore that is about to replace it, so it is locked first. */
async function replaceEmpty(draft: string, path: string, world: World): Promise<void> {
  const giveUpAt = world.elapsed() + patienceMs;
  for (;;) {
    if (hasContent(path)) return;
    try {
      const held = holdDatabase(path);
      try {
        refuseLeftLog(path);
        if (!hasContent(path)) renameSync(draft, path);
        return;
      } finally {
        held.release();
      }
    } catch (error) {
      if (hasContent(path)) return;
      if (world.elapsed() >= giveUpAt) throw error;
      await world.sleep(5);
    }
  }
}
