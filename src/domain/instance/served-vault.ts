/**
 * Records that a server has the vault open, in the database, and how far the database has progressed, in the high-water
 * mark next to it. This distinguishes a copy of the database alone from a stopped vault.
 */

import { describeFileError } from '../../base/system-error.ts';
import type { Reader } from '../../db/database.ts';
import { readHighWater } from '../../db/tables/assigned-ids.ts';
import { deleteSettings, putSetting, readSetting } from '../../db/tables/settings.ts';
import type { LogContext, SecretsContext } from '../contexts.ts';
import type { SharedContext } from '../nodes/database-clock.ts';
import type { LeaseOwners, OwnersContext } from '../nodes/lease-owners.ts';
import { forgetServedSettings } from './served-settings.ts';
import { ensureVaultIdentity } from './vault-identity.ts';
import { type Mark, markPath, readMarkLater, writeMark } from './vault-mark.ts';

/** The content of a mark, and the key of its MAC. */
export type MarkedState = Mark & { readonly keyId: string };

/**
 * Writes the mark unless it still equals `last`, and returns its content; a database on a server has none. `folds` is
 * the new count of the file if a log was just checkpointed. Throws the system's error.
 */
export async function updateMark(
  vault: SecretsContext,
  { last, folds }: { readonly last?: MarkedState | undefined; readonly folds?: number | undefined } = {},
): Promise<MarkedState | undefined> {
  const { db, keyring } = vault;
  // A database server manages its own files: no copy is opened by mistake.
  if (db.file === undefined) return undefined;
  const { id: vaultId } = await ensureVaultIdentity(vault);
  const { events, versions } = await readHighWater(db.reader);
  const before = await readMarkLater(markPath(db.file.path), keyring);
  const known = typeof before === 'object' && before.vaultId === vaultId ? before.folds : 0;
  const masterKey = keyring.current;
  const state = { vaultId, events, versions, folds: folds ?? known, keyId: masterKey.name };
  if (last !== undefined && before !== 'none' && isSame(last, state)) return last;
  await writeMark(db.file.path, state, masterKey);
  return state;
}

/**
 * Records that this server has the vault open. Failing to write the mark does not prevent serving. A database that
 * nodes share is not a file and has no mark; a job records its nodes.
 */
export async function beginServing(
  vault: SecretsContext & LogContext & SharedContext & OwnersContext,
): Promise<void> {
  if (vault.sharedClock !== undefined) return;
  const { db, world, log, owners } = vault;
  try {
    await updateMark(vault);
    await db.write(async (writer) => {
      if ((await readSetting(writer, 'served-since')) === undefined) {
        await putSetting(writer, 'served-since', world.now());
      }
      const own = owners.own === undefined ? [] : [owners.own];
      await putSetting(
        writer,
        'served-by',
        JSON.stringify([...(await otherServers(writer, owners)), ...own]),
      );
    });
    await updateMark(vault, { folds: await db.foldLog() });
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to write the mark of the database');
  }
}

/** The locks of the other servers that have the database open. */
async function otherServers(reader: Reader, owners: LeaseOwners): Promise<string[]> {
  const stored = await readSetting(reader, 'served-by');
  const names = typeof stored === 'string' ? (JSON.parse(stored) as string[]) : [];
  const held = owners.held();
  return names.filter((name) => name !== owners.own && held.includes(name));
}

/**
 * Records the orderly stop of the server `instance`: the file alone is complete once no other process has it open. The
 * last one removes the record that the vault is served.
 */
export async function endServing(
  vault: SecretsContext & LogContext & SharedContext & OwnersContext,
  instance: string,
): Promise<void> {
  await forgetServedSettings(vault, instance);
  if (vault.sharedClock !== undefined) return;
  const { db, log, owners } = vault;
  try {
    await db.write(async (writer) => {
      const others = await otherServers(writer, owners);
      if (others.length > 0) await putSetting(writer, 'served-by', JSON.stringify(others));
      else await deleteSettings(writer, ['served-since', 'served-by']);
    });
    await updateMark(vault, { folds: await db.foldLog() });
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to write the mark of the database');
  }
}

function isSame(one: MarkedState, other: MarkedState): boolean {
  return (
    one.vaultId === other.vaultId &&
    one.events === other.events &&
    one.versions === other.versions &&
    one.folds === other.folds &&
    one.keyId === other.keyId
  );
}
