/**
 * The high-water mark of a served database, stored next to it. A database that ends before its mark lost its log or is
 * an older copy, and is not opened. The mark covers only what is durable, so after a kill or a power failure it is
 * behind.
 */
import { readFileSync } from 'node:fs';
import { open, readFile, rename } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import { syncPathLater } from '../../base/durable-file.ts';
import { StorageError } from '../../base/storage-error.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import type { DatabaseFile } from '../../db/database-file.ts';
import type { HighWater } from '../../db/tables/assigned-ids.ts';

const count = z.int().min(0);

const markSchema = z.strictObject({
  vault_mark: z.literal(1),
  vault_id: z.string().max(64),
  /** Highest ids assigned so far. */
  audit_events: count,
  certificate_versions: count,
  /** How often a log was checkpointed by then. */
  folds: count,
  key_id: z.string().max(64),
  mac: z.string().regex(/^[0-9a-f]{64}$/),
});

type MarkContent = z.output<typeof markSchema>;

/** Authenticated content of a mark. */
export type Mark = HighWater & { readonly vaultId: string; readonly folds: number };

type MarkOrNone = Mark | 'none' | 'unknown';

/** The mark of the database at `path`. */
export function markPath(path: string): string {
  return join(dirname(path), 'vault.mark');
}

/**
 * `none` if the file is missing; `unknown` if no master key authenticates it: it is empty, damaged, written with a key
 * that is gone, or unreadable.
 */
export function readMark(path: string, keyring: Pick<Keyring, 'find'>): MarkOrNone {
  try {
    return markIn(readFileSync(path, 'utf8'), keyring);
  } catch (error) {
    return noMark(error);
  }
}

/** The same without blocking the event loop. */
export async function readMarkLater(path: string, keyring: Pick<Keyring, 'find'>): Promise<MarkOrNone> {
  try {
    return markIn(await readFile(path, 'utf8'), keyring);
  } catch (error) {
    return noMark(error);
  }
}

function noMark(error: unknown): 'none' | 'unknown' {
  return (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'none' : 'unknown';
}

function markIn(text: string, keyring: Pick<Keyring, 'find'>): Mark | 'unknown' {
  const content = contentOf(text);
  if (content === undefined) return 'unknown';
  const { mac, ...said } = content;
  const key = keyring.find(said.key_id);
  if (key === undefined || !sameBytes(Buffer.from(mac, 'hex'), macOf(key, said))) return 'unknown';
  const { vault_id: vaultId, audit_events: events, certificate_versions: versions, folds } = said;
  return { vaultId, events, versions, folds };
}

/**
 * Throws StorageError if the database ends before its mark, or is a copy of a running vault's without the log. Changes
 * nothing. Call it before the database is opened for writing. Returns `unmarked` if a killed server left a log but no
 * mark: the caller that checkpoints that log must write one.
 */
export function refuseIncompleteDatabase(
  database: DatabaseFile,
  keyring: Pick<Keyring, 'find'>,
): 'marked' | 'unmarked' {
  const { path } = database;
  // Read the mark first: a concurrent write only moves the database further ahead of it.
  const mark = readMark(markPath(path), keyring);
  const sight = database.inspect();
  if (mark === 'none') {
    if (!isCopyWithoutLog(sight, database)) return sight.isServed ? 'unmarked' : 'marked';
    // A server that started meanwhile wrote its mark before recording that it serves.
    if (readMark(markPath(path), keyring) !== 'none') return refuseIncompleteDatabase(database, keyring);
    throw new StorageError(
      `${path} is a copy of a running vault's database without its log (${database.log})`,
      {
        hint: advice(path, `Copy ${basename(database.log)} beside it`),
      },
    );
  }
  if (mark === 'unknown' || mark.vaultId !== sight.vaultId) return 'marked';
  const lost = [
    ...(sight.events < mark.events ? [`audit event ${sight.events} of ${mark.events}`] : []),
    ...(sight.versions < mark.versions ? [`certificate version ${sight.versions} of ${mark.versions}`] : []),
  ];
  if (lost.length === 0) {
    refuseOlderThanLog(database, mark);
    return 'marked';
  }
  throw new StorageError(`${path} is older than its mark: it ends at ${lost.join(' and ')}`, {
    hint: advice(path, `Put back the newest ${basename(path)} and its ${basename(database.log)}`),
  });
}

/** A log completes the file it was written for; checkpointed into an older one, it damages that. */
function refuseOlderThanLog(database: DatabaseFile, { folds }: Mark): void {
  const log = database.leftLog();
  if (log === undefined || database.folds() >= folds) return;
  const { path } = database;
  throw new StorageError(`${path} is older than its log ${log}, which does not belong to it`, {
    hint: advice(path, `Put back the ${basename(path)} that the log was written for`),
  });
}

/** Writes the mark of the database durably. Throws the error of the system. */
export async function writeMark(path: string, mark: Mark, masterKey: MasterKey): Promise<void> {
  const said = {
    vault_mark: 1 as const,
    vault_id: mark.vaultId,
    audit_events: mark.events,
    certificate_versions: mark.versions,
    folds: mark.folds,
    key_id: masterKey.name,
  };
  const mac = macOf(masterKey, said).toString('hex');
  const file = markPath(path);
  // One name for all processes: a draft that a killed one left is overwritten. Two concurrent writers may leave an
  // empty mark for a moment, which is `unknown`.
  const draft = `${file}.draft`;
  const handle = await open(draft, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify({ ...said, mac })}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await rename(draft, file);
  } catch (error) {
    // The other process has renamed it.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
  await syncPathLater(dirname(file));
}

/** A server writes its mark before it records that it serves, so a killed one has left a mark. */
function isCopyWithoutLog(
  { isServed, mayHaveLog, isReplicated }: ReturnType<DatabaseFile['inspect']>,
  database: DatabaseFile,
): boolean {
  return isServed && mayHaveLog && !isReplicated && database.leftLog() === undefined;
}

function advice(path: string, first: string): string {
  const directory = dirname(path);
  return (
    `${first}, or restore a backup: vault restore FILE --replace --data-dir ${directory}\n` +
    `  To continue without the missing data, empty the mark: true >${markPath(path)}\n` +
    '  Nothing was changed.'
  );
}

function contentOf(text: string): MarkContent | undefined {
  try {
    return markSchema.safeParse(JSON.parse(text)).data;
  } catch {
    // Not JSON: the mark was emptied or damaged.
    return undefined;
  }
}

function macOf(key: MasterKey, said: Omit<MarkContent, 'mac'>): Buffer {
  return key.authenticate('authenticate: vault mark', Buffer.from(JSON.stringify(said)));
}
