/**
 * Moves a vault to another database. No other process can write to the source while it is copied, nor afterwards, so
 * that nothing that was acknowledged is missing in the target. Three commits: the copy, which cannot be served yet; the
 * mark of the source; and the end. After a kill in between, the same command continues; at most one of the two can be
 * served.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { deleteSettings, putSetting } from '../../db/tables/settings.ts';
import { localCli, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { markMoved, movedTo, refuseMoved, unmarkMoved } from '../instance/moved-vault.ts';
import { ensureVaultIdentity, vaultIdentity } from '../instance/vault-identity.ts';
import { recordedNodes, silenceOfNodes } from '../nodes/nodes.ts';
import type { CopyTarget } from './copy-target.ts';
import { type CopiedVault, fillDatabase, refuseFilled } from './filled-database.ts';

/**
 * Copies the vault into the target and marks the source. Returns what was copied; undefined if an earlier call that was
 * killed had copied it already. Throws OperatorError if the target is not empty, or if the copy is not what it should
 * be; then nothing has changed.
 */
export async function moveVault(
  source: SecretsContext,
  target: CopyTarget,
): Promise<CopiedVault | undefined> {
  const isMarked = async () => (await movedTo(source.db.reader)) === target.place;
  let copied: CopiedVault | undefined;
  try {
    const { id: vaultId } = await ensureVaultIdentity(source);
    const hasArrived = (await vaultIdentity(target.db.reader))?.id === vaultId;
    if (!(hasArrived && (await isMarked()))) copied = await copyAndMark(source, target, vaultId);
    await target.db.write((writer) => deleteSettings(writer, ['copied-from']));
  } catch (error) {
    // What ended a commit may have been too late to prevent it.
    await ((await isMarked().catch(() => true)) ? target.close() : target.abandon());
    throw error;
  }
  await target.publish();
  return copied;
}

async function copyAndMark(
  source: SecretsContext,
  target: CopyTarget,
  vaultId: string,
): Promise<CopiedVault> {
  const { db, world } = source;
  await refuseMoved(db);
  await refuseFilled(target.db, vaultId);
  return db.write(async (held) => {
    await db.whole.lock(held);
    const copied = await fillDatabase({ ...source, reader: held }, target.db, {
      vaultId,
      settle: async (writer) => {
        await putSetting(writer, 'copied-from', vaultId);
        const detail = { from: db.place, to: target.place };
        record(writer, { actor: localCli, action: 'database.copy', resource: 'vault', detail }, world.now());
      },
    });
    await markMoved(db, held, target.place);
    return copied;
  });
}

/**
 * Throws OperatorError if a node has been seen on the database of a server within a minute. A file has a lock that says
 * more: `DatabaseFile.hold`.
 */
export async function refuseServed({ db }: SecretsContext): Promise<void> {
  if (!db.isShared) return;
  const now = await db.now();
  const live = (await recordedNodes(db.reader)).filter(({ seenAt }) => seenAt > now - silenceOfNodes);
  if (live.length === 0) return;
  const hosts = [...new Set(live.map(({ host }) => host))].join(', ');
  throw new OperatorError(`the vault in ${db.place} is being served (${hosts})`, {
    hint: 'Stop "vault serve" on all nodes. One that was killed counts for a minute. Nothing was changed.',
  });
}

/**
 * Lets a vault that was moved be served again, and returns where it had gone. Throws OperatorError if it was not moved.
 */
export async function reopenVault({ db, world }: SecretsContext): Promise<string> {
  return db.write(async (writer) => {
    const to = await unmarkMoved(db, writer);
    if (to === undefined) {
      throw new OperatorError(`the vault in ${db.place} was not moved`, {
        hint: 'There is nothing to take back.',
      });
    }
    const detail = { moved_to: to };
    record(writer, { actor: localCli, action: 'database.reopen', resource: 'vault', detail }, world.now());
    return to;
  });
}
