/**
 * Replaces the master key while the vault serves: writes the new key file, records the key in the database, reseals all
 * secrets, and retires the old key. An interrupted rotation is resumed where it stopped.
 */
import { OperatorError } from '../../base/operator-error.ts';
import { keyFilesBeside } from '../../crypto/secrets/keyring.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import type { Reader } from '../../db/database.ts';
import {
  currentMasterKey,
  listMasterKeys,
  type MasterKeyRow,
  retirePreviousMasterKeys,
} from '../../db/tables/master-keys.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { DatabaseContext, SecretsContext } from '../contexts.ts';
import { makeCurrent } from './master-key-check.ts';
import { placeNextKey, settleKeyFiles } from './master-key-files.ts';
import { type Resealed, resealAll } from './resealing.ts';
import { refuseKeyMissingNow, refuseKeyMissingOnNodes, refuseUnservedKey } from './served-keys.ts';

export type RotationOrder = {
  readonly actor: Actor;
  /** The key to use in place of a new one. */
  readonly newKey?: MasterKey | undefined;
  /** Rotates even if a running or killed server cannot open the next key. */
  readonly force?: boolean | undefined;
  /** Called at each step with the number of resealed blobs. */
  readonly report: (step: RotationStep, blobs: number) => void;
};

export type RotationStep = 'begun' | 'resumed' | 'sealed';

export type Rotation = Resealed & {
  readonly from: readonly string[];
  readonly to: string;
  /** `left` if the key file still holds the old key, because it cannot be changed from here. */
  readonly files: 'settled' | 'left';
};

/**
 * Rotates, or resumes an interrupted rotation. Two concurrent calls share one. Throws OperatorError if the next key
 * cannot be written; once a rotation has begun, it can always be resumed.
 */
export async function rotateMasterKey(vault: SecretsContext, order: RotationOrder): Promise<Rotation> {
  const { db, keyring, world } = vault;
  if (await isRotating(vault)) order.report('resumed', 0);
  else await begin(vault, order);
  const { to, files } = await db.write(async (writer) => {
    const to = (await currentMasterKey(writer)) ?? keyring.current.name;
    return { to, files: settleKeyFiles(keyring, to) };
  });
  const resealed = await resealAll(vault, (blobs) => order.report('sealed', blobs));
  const from = await db.write(async (writer) => {
    const rows = (await listMasterKeys(writer)).filter(({ state }) => state === 'previous');
    // A concurrent call has completed it, and may have begun another one that has not resealed everything yet.
    if (rows.length === 0 || (await currentMasterKey(writer)) !== to) return [];
    const now = world.now();
    await retirePreviousMasterKeys(writer, now);
    const ids = rows.map(({ id }) => id);
    const detail = { from: ids, to, blobs: resealed.blobs, damaged: resealed.damaged.length };
    record(writer, { ...event(order, to), action: 'master_key.rotate', detail }, now);
    return ids;
  });
  return { ...resealed, from, to, files };
}

/** Throws OperatorError while a rotation is unfinished. */
export async function refuseDuringRotation(reader: Reader): Promise<void> {
  if ((await previous(reader)).length === 0) return;
  throw new OperatorError('the master key rotation is not finished', {
    hint: 'Finish the rotation first.\n  Fix: vault master-key rotate',
  });
}

/** Whether a rotation is unfinished. */
export async function isRotating({ db }: DatabaseContext): Promise<boolean> {
  return (await previous(db.reader)).length > 0;
}

/** Keys that blobs may still need. */
async function previous(reader: Reader): Promise<MasterKeyRow[]> {
  return (await listMasterKeys(reader)).filter(({ state }) => state === 'previous');
}

async function begin(vault: SecretsContext, order: RotationOrder): Promise<void> {
  const { db, keyring, world } = vault;
  if (order.newKey !== undefined) refuseKnown(await listMasterKeys(db.reader), order.newKey);
  if (order.force !== true) await refuseUnservedKey(vault, order.newKey);
  const next = placeNextKey(keyring, world, order.newKey);
  if (order.force !== true) await refuseKeyMissingOnNodes(vault, next);
  const outcome = await db.write(async (writer) => {
    const rows = await listMasterKeys(writer);
    const known = rows.find(({ id }) => id === next.name);
    // A concurrent call with the same key was first.
    if (rows.some(({ state }) => state === 'previous') || known?.state === 'current') return 'resumed';
    if (known !== undefined) throw usedBefore(next);
    // Files are removed under this same lock: from here on, this file counts as needed.
    if (keyFilesBeside(keyring.path).every(({ id }) => id !== next.name)) throw goneAgain(next);
    // Nodes record themselves in transactions, which wait for this one.
    if (order.force !== true) await refuseKeyMissingNow(writer, vault, next);
    await makeCurrent(vault, writer, next);
    const detail = { from: rows.find(({ state }) => state === 'current')?.id, to: next.name };
    record(writer, { ...event(order, next.name), action: 'master_key.begin', detail }, world.now());
    return 'begun';
  });
  const current = await currentMasterKey(db.reader);
  if (current !== undefined) keyring.use(current);
  order.report(outcome, 0);
}

function event({ actor }: RotationOrder, key: string | undefined) {
  return { actor, resource: `master-key:${key}` };
}

/** Runs before the file is placed next to the current one, where it would block the next rotation. */
function refuseKnown(rows: readonly MasterKeyRow[], newKey: MasterKey): void {
  const state = rows.find(({ id }) => id === newKey.name)?.state;
  if (state === 'retired') throw usedBefore(newKey);
  if (state !== 'current') return;
  throw new OperatorError(`master key ${newKey.name} is already the current one`, {
    hint: 'Use a new key. Nothing was changed.',
  });
}

function goneAgain({ name }: MasterKey): OperatorError {
  return new OperatorError(`the file of the next master key (${name}) was removed during the rotation`, {
    hint: 'Nothing was changed. Run the command again.',
  });
}

function usedBefore({ name }: MasterKey): OperatorError {
  return new OperatorError(`master key ${name} is a retired key of this vault`, {
    hint: 'A retired key cannot be used again. Use a new key.',
  });
}
