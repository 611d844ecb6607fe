/**
 * Whether the running servers have the next master key. One without it could open nothing that is sealed once the
 * rotation has begun.
 */
import { second } from '../../base/duration.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { nextKeyPath } from '../../crypto/secrets/keyring.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import { readKeyFile } from '../../crypto/secrets/master-key-file.ts';
import type { Reader } from '../../db/database.ts';
import type { KeyringContext, SecretsContext } from '../contexts.ts';
import { ownServedSettings } from '../instance/served-settings.ts';
import { liveNodes, type ServingNode } from '../nodes/nodes.ts';

/** A node reports every five seconds which keys it finds. */
const patience = 12 * second;

/**
 * Throws OperatorError if the only server of this database reads its keys only when it starts, and lacks the next one.
 */
export async function refuseUnservedKey(
  { db, keyring }: SecretsContext,
  newKey: MasterKey | undefined,
): Promise<void> {
  const servedKeys = (await ownServedSettings(db.reader))?.master_keys ?? undefined;
  if (servedKeys === undefined) return;
  const next = newKey?.name ?? readKeyFile(nextKeyPath(keyring.path))?.id;
  if (next !== undefined && servedKeys.includes(next)) return;
  const which = next === undefined ? 'the next master key' : `the next master key (${next})`;
  throw new OperatorError(`the running server does not have ${which}`, {
    hint:
      'It reads its keys only when it starts. Give it the next key too, for example with\n' +
      '  LoadCredential=master.key.next:FILE, restart it, and run this again. Nothing was changed.\n' +
      '  If no server runs, add --force.',
  });
}

/**
 * Throws OperatorError unless each running node of a shared database has the next key, whose file is already in place
 * here. Waits a little for nodes that find it by themselves.
 */
export async function refuseKeyMissingOnNodes(vault: SecretsContext, next: MasterKey): Promise<void> {
  const { db, keyring, world } = vault;
  let without = await nodesWithout(db.reader, next);
  for (let waited = 0; without.length > 0 && waited < patience; waited += second) {
    await world.sleep(second);
    without = await nodesWithout(db.reader, next);
  }
  if (without.length > 0) throw await missingOn(db.reader, without, keyring.path, next);
}

/**
 * The same without waiting, in the transaction that begins the rotation: a node may have started since the first check.
 */
export async function refuseKeyMissingNow(
  writer: Reader,
  { keyring }: KeyringContext,
  next: MasterKey,
): Promise<void> {
  const without = await nodesWithout(writer, next);
  if (without.length > 0) throw await missingOn(writer, without, keyring.path, next);
}

async function nodesWithout(reader: Reader, { name }: MasterKey): Promise<ServingNode[]> {
  return (await liveNodes(reader)).filter(({ masterKeys }) => !masterKeys.includes(name));
}

async function missingOn(
  reader: Reader,
  without: readonly ServingNode[],
  keyFile: string,
  { name }: MasterKey,
): Promise<OperatorError> {
  const { length: all } = await liveNodes(reader);
  return new OperatorError(
    `${without.length} of ${all} nodes do not have the next master key (${name}): ${hostsOf(without)}`,
    {
      hint:
        `Copy the key, here ${nextKeyPath(keyFile)}, to each of them as FILE.next, where FILE is its --master-key-file,\n` +
        '  restart those that get their key as a credential or from a command, and run this again.\n' +
        '  The rotation has not begun. If these nodes no longer run, add --force.',
    },
  );
}

function hostsOf(nodes: readonly ServingNode[]): string {
  return [...new Set(nodes.map(({ host }) => host))].join(', ');
}
