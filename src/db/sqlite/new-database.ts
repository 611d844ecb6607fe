/**
 * How a database comes to be: filled under another name and published whole, and never where what remains beside the path
 * belongs to a database that was lost. SQLite deletes a log that it finds beside an empty database.
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
  unlinkSync,
} from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { makeDurableDirectory, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { holdDatabase } from './database-lock.ts';

/** How long to wait for another process that creates or restores a database at the same path. */
const patienceMs = 5000;

/** Whether the file is there and not empty. Throws the error of the system where that cannot be seen. */
export function hasContent(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Bytes of a journal's header. A journal with no more has no page in it: locking an empty file leaves one behind. */
const journalHeader = 512;

/** The path beside which SQLite keeps log and journal: where a symbolic link leads, also where nothing is there. */
export function linkedPath(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  try {
    return realpathSync(path);
  } catch {
    // The link leads to nothing.
    return resolve(dirname(path), readlinkSync(path));
  }
}

/** The write-ahead log or the journal beside a path that still holds data; undefined where neither does. */
export function leftLog(path: string): string | undefined {
  const size = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  const real = linkedPath(path);
  if (size(`${real}-wal`) > 0) return `${real}-wal`;
  return size(`${real}-journal`) > journalHeader ? `${real}-journal` : undefined;
}

/** Throws OperatorError where the database at `path` is missing or empty while its log holds data. Changes nothing. */
export function refuseLeftLog(path: string): void {
  const log = hasContent(path) ? undefined : leftLog(path);
  if (log === undefined) return;
  const kib = Math.ceil(statSync(log).size / 1024);
  const state = statSync(path, { throwIfNoEntry: false }) === undefined ? 'missing' : 'empty';
  throw new OperatorError(`the database ${path} is ${state}, but its log ${log} holds ${kib} KiB of data`, {
    hint: lostDatabaseAdvice(path),
  });
}

/** What to do where a database is lost: the end of every refusal to create one in its place. */
export function lostDatabaseAdvice(path: string): string {
  const directory = dirname(path);
  return (
    `Put ${basename(path)} back, or restore a backup: vault restore FILE --replace --data-dir ${directory}\n` +
    `  To start a new vault instead, move the old files away: mv ${directory} ${directory}.old\n` +
    '  Nothing was changed.'
  );
}

/**
 * Creates the database at `path`, mode 0600, durably. `fill` makes a database of the empty file that it is given, and leaves
 * it closed. Of several processes one publishes its file, and the others find it there. Throws OperatorError where the
 * log of a lost database is beside the path.
 */
export async function createDatabase(
  path: string,
  world: World,
  fill: (draft: string) => Promise<void>,
): Promise<void> {
  refuseLeftLog(path);
  makeDurableDirectory(dirname(path));
  const prefix = `${basename(path)}.creating-`;
  const draft = join(dirname(path), `${prefix}${world.randomBytes(8).toString('hex')}`);
  try {
    closeSync(openSync(draft, 'wx', 0o600));
    await fill(draft);
    // Its log does not come along.
    if (leftLog(draft) !== undefined) throw new Error(`${draft} was left with a log that is not in it`);
    syncPath(draft);
    await publish(draft, path, world);
    syncPath(dirname(path));
    removeDrafts(dirname(path), prefix);
  } catch (error) {
    // The first process removes the drafts of the others, which may notice this at any step.
    if (!hasContent(path)) throw error;
  } finally {
    for (const suffix of ['', '-wal', '-shm', '-journal']) removeIfPossible(draft + suffix);
  }
}

/** Also those of processes that were killed: nothing was ever in them. */
function removeDrafts(directory: string, prefix: string): void {
  for (const name of readdirSync(directory).filter((name) => name.startsWith(prefix))) {
    removeIfPossible(join(directory, name));
  }
}

function removeIfPossible(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It does not exist, or the disk fails: then its writer reports that, and the next creation removes it.
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

/** An empty file may be held by a restore that is about to replace it, so it is locked first. */
async function replaceEmpty(draft: string, path: string, world: World): Promise<void> {
  const giveUpAt = world.now() + patienceMs;
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
      if (world.now() >= giveUpAt) throw error;
      await world.sleep(5);
    }
  }
}
