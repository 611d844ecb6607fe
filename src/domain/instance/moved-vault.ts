/**
 * The mark of a database whose vault was moved to another one: commands and servers refuse it, and the database itself
 * rejects writes of processes that had opened it before.
 */
import { OperatorError } from '../../base/operator-error.ts';
import type { Database, Reader, Writer } from '../../db/database.ts';
import { deleteSettings, putSetting, readSetting } from '../../db/tables/settings.ts';

/** Where this database's vault was moved; undefined if it is still here. */
export async function movedTo(reader: Reader): Promise<string | undefined> {
  const place = await readSetting(reader, 'moved-to');
  return typeof place === 'string' ? place : undefined;
}

/** The vault id of an unfinished copy; undefined for any other database. */
export async function unfinishedCopyOf(reader: Reader): Promise<string | undefined> {
  const id = await readSetting(reader, 'copied-from');
  return typeof id === 'string' ? id : undefined;
}

/** Throws OperatorError if the vault of this database was moved, or its copy is unfinished. */
export async function refuseMoved(db: Pick<Database, 'reader' | 'place'>): Promise<void> {
  const to = await movedTo(db.reader);
  if (to !== undefined) {
    throw new OperatorError(`the vault in ${db.place} was moved to ${to}`, {
      hint: `Use ${to}. To serve this database again instead, without what changed there since: vault database reopen`,
    });
  }
  if ((await unfinishedCopyOf(db.reader)) === undefined) return;
  throw new OperatorError(`the copy of a vault into ${db.place} is not finished`, {
    hint: 'Run the same "vault database copy" again. Until then, the vault is where it was.',
  });
}

/** Marks the database; call it last in the transaction of the writer. */
export async function markMoved(db: Pick<Database, 'whole'>, writer: Writer, to: string): Promise<void> {
  await putSetting(writer, 'moved-to', to);
  await db.whole.forbidWrites(writer);
}

/** Removes the mark; returns where the vault was moved. Call it first in a transaction. */
export async function unmarkMoved(db: Pick<Database, 'whole'>, writer: Writer): Promise<string | undefined> {
  const to = await movedTo(writer);
  if (to === undefined) return undefined;
  await db.whole.allowWrites(writer);
  await deleteSettings(writer, ['moved-to']);
  return to;
}
