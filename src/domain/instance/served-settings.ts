/**
 * The settings that running servers use, recorded in the database without secrets. Flags and environment of a server
 * are invisible to other processes; commands, `vault doctor` and requests read them here. After a kill the record
 * stays.
 */
import { Problem } from '../../base/problem.ts';
import { describeFileError } from '../../base/system-error.ts';
import type { Reader } from '../../db/database.ts';
import { deleteSettings, putSetting, readSetting } from '../../db/tables/settings.ts';
import type { DatabaseContext, LogContext } from '../contexts.ts';
import type { SharedContext } from '../nodes/database-clock.ts';
import { forgetNode, liveNodes } from '../nodes/nodes.ts';
import { parseServedSettings, type ServedSettings, servedSettingsText } from '../nodes/server-record.ts';

/** A server that uses the database, or used it when it was killed. */
export type ServingServer = {
  /** The name of its host; undefined if it can only be this one. */
  readonly host: string | undefined;
  readonly settings: ServedSettings;
};

/** The running servers of this database, and those that were killed; none after an orderly stop. */
export async function servingServers(reader: Reader): Promise<ServingServer[]> {
  const own = await ownServedSettings(reader);
  const nodes = await liveNodes(reader);
  return [
    ...(own === undefined ? [] : [{ host: undefined, settings: own }]),
    ...nodes.flatMap(({ host, settings }) => (settings === undefined ? [] : [{ host, settings }])),
  ];
}

/** The settings of the only server of a database on one host; undefined after an orderly stop. */
export async function ownServedSettings(reader: Reader): Promise<ServedSettings | undefined> {
  const recorded = await readSetting(reader, 'served-settings');
  return typeof recorded === 'string' ? parseServedSettings(recorded) : undefined;
}

/**
 * Records the settings, unless they are recorded already. Logs a failure, which must not keep the vault from serving.
 * If nodes share the database, a job records them with the node.
 */
export async function recordServedSettings(
  { db, log, sharedClock }: DatabaseContext & LogContext & SharedContext,
  settings: ServedSettings,
): Promise<void> {
  if (sharedClock !== undefined) return;
  try {
    const value = servedSettingsText(settings);
    if ((await readSetting(db.reader, 'served-settings')) === value) return;
    await db.write((writer) => putSetting(writer, 'served-settings', value));
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to record the settings of the server');
  }
}

/** Removes the record at an orderly stop, unless another server has replaced it. Logs a failure. */
export async function forgetServedSettings(
  vault: DatabaseContext & LogContext & SharedContext,
  instance: string,
): Promise<void> {
  const { db, log, sharedClock } = vault;
  try {
    if (sharedClock !== undefined) return await forgetNode(vault, instance);
    await db.write(async (writer) => {
      if ((await ownServedSettings(writer))?.instance === instance) {
        await deleteSettings(writer, ['served-settings']);
      }
    });
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to remove the recorded settings of the server');
  }
}

/** The problem if the vault's own HTTPS needs the certificate. */
export function neededForHttps(name: string): Problem {
  return new Problem('certificate_in_use', {
    detail: `Certificate "${name}" is in use: the vault serves HTTPS with it.`,
    hint: 'Clients that pin its key would lose access. Set another certificate with --tls-certificate first, or add --force.',
  });
}
