/**
 * The nodes of a shared database: what each server records of itself while it runs, so that commands on any host, and
 * the other nodes, know of it. A database that one machine uses has none.
 */
import { minute } from '../../base/duration.ts';
import type { Keyring } from '../../crypto/secrets/keyring.ts';
import type { Reader } from '../../db/database.ts';
import {
  deleteNode,
  deleteNodesSeenBefore,
  listNodes,
  type NodeRow,
  putNode,
} from '../../db/tables/nodes/nodes.ts';
import type { DatabaseContext, KeyringContext } from '../contexts.ts';
import type { DatabaseClock } from './database-clock.ts';
import { parseServedSettings, type ServedSettings, servedSettingsText } from './server-record.ts';

/** A node that has not been seen for this long has died, or has lost the database. */
export const silenceOfNodes = minute;

/** A node that has not been seen for this long is forgotten. */
const forgottenAfter = 10 * minute;

/** What a server says of itself. `settings.instance` is the id of the node. */
export type OwnNode = { readonly host: string; readonly version: string; readonly settings: ServedSettings };

/** A recorded node; times are in the time of the database. */
export type ServingNode = {
  readonly id: string;
  readonly host: string;
  readonly version: string;
  readonly startedAt: number;
  readonly seenAt: number;
  /** Milliseconds by which its clock is ahead of that of the database. */
  readonly clockAhead: number;
  /** The ids of the master keys that it finds. */
  readonly masterKeys: readonly string[];
  /** Undefined if a vault of another version wrote something else. */
  readonly settings: ServedSettings | undefined;
};

/**
 * Records that the node runs, and forgets others that have not been seen for a long time. Rejects with StorageError.
 */
export async function recordNode(
  { db, keyring, sharedClock }: DatabaseContext & KeyringContext & { readonly sharedClock: DatabaseClock },
  { host, version, settings }: OwnNode,
): Promise<void> {
  const now = await sharedClock.measure();
  const row: NodeRow = {
    id: settings.instance,
    host: host.slice(0, 255),
    version,
    started_at: now,
    seen_at: now,
    clock_offset: sharedClock.ahead,
    settings: servedSettingsText(settings),
    master_keys: JSON.stringify(keysFoundBy(keyring)),
  };
  await db.write(async (writer) => {
    await putNode(writer, row);
    await deleteNodesSeenBefore(writer, now - forgottenAfter);
  });
}

function keysFoundBy(keyring: Keyring): string[] {
  try {
    return keyring.names();
  } catch {
    // The key file cannot be read at the moment. What was read before still opens everything.
    return keyring.all.map(({ name }) => name);
  }
}

/** Removes a node that stops. Rejects with StorageError. */
export async function forgetNode({ db }: DatabaseContext, id: string): Promise<void> {
  await db.write((writer) => deleteNode(writer, id));
}

/** All recorded nodes, also those that have not been seen for a while, in order of their hosts. */
export async function recordedNodes(reader: Reader): Promise<ServingNode[]> {
  return (await listNodes(reader)).map((row) => ({
    id: row.id,
    host: row.host,
    version: row.version,
    startedAt: row.started_at,
    seenAt: row.seen_at,
    clockAhead: row.clock_offset,
    masterKeys: stringsIn(row.master_keys),
    settings: parseServedSettings(row.settings),
  }));
}

/**
 * The nodes that run, as far as can be known without asking for the time: those that were seen within a minute of the
 * one that was seen last. If all were killed, these are the last ones, as with the settings of a server that was
 * killed.
 */
export async function liveNodes(reader: Reader): Promise<ServingNode[]> {
  const nodes = await recordedNodes(reader);
  const last = Math.max(...nodes.map(({ seenAt }) => seenAt));
  return nodes.filter(({ seenAt }) => seenAt > last - silenceOfNodes);
}

function stringsIn(json: string): string[] {
  try {
    const list: unknown = JSON.parse(json);
    return Array.isArray(list) ? list.filter((one) => typeof one === 'string') : [];
  } catch {
    // Damaged: nothing is known.
    return [];
  }
}
