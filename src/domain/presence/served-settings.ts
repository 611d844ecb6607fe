/**
 * The settings that a running server uses, recorded in the database without secrets. Flags and environment of the server are
 * invisible to other processes; commands, `vault doctor` and requests read them here. After a kill the record stays.
 */
import { z } from 'zod';
import { Problem } from '../../base/problem.ts';
import { describeFileError } from '../../base/system-error.ts';
import type { Reader } from '../../db/database.ts';
import { deleteSettings, putSetting, readSetting } from '../../db/tables/settings.ts';
import type { DatabaseContext, LogContext } from '../contexts.ts';

const text = z.string().max(4096).nullable();

// Not strict: a newer vault may record more.
const schema = z.object({
  /** The server that recorded it, so that an older server that stops later leaves the record. */
  instance: z.string().max(64),
  listen: z.object({ host: z.string().max(255), port: z.int().min(0).max(65_535) }),
  public_url: text,
  tls_certificate: text,
  tls_cert_file: text,
  tls_key_file: text,
  backup_dir: text,
  /** Milliseconds. */
  backup_every: z.int().nullable(),
  backup_keep: z.int().nullable(),
  /** The ids of the master keys that it can open until it restarts; null if it finds new key files by itself. */
  master_keys: z.array(z.string().max(64)).max(1000).nullable().optional(),
});

/** What the server of this database uses, or used when it was killed. */
export type ServedSettings = z.output<typeof schema>;

/** The settings of the running server, or of one that was killed; undefined after an orderly stop. */
export async function servedSettings(reader: Reader): Promise<ServedSettings | undefined> {
  const recorded = await readSetting(reader, 'served-settings');
  if (typeof recorded !== 'string') return undefined;
  try {
    return schema.safeParse(JSON.parse(recorded)).data;
  } catch {
    // Not JSON: damaged, so nothing is known.
    return undefined;
  }
}

/** Records the settings, unless they are recorded already. Logs a failure, which must not keep the vault from serving. */
export async function recordServedSettings(
  { db, log }: DatabaseContext & LogContext,
  settings: ServedSettings,
): Promise<void> {
  try {
    const value = JSON.stringify(schema.parse(settings));
    // The workers of one server record the same.
    if ((await readSetting(db.reader, 'served-settings')) === value) return;
    await db.write((writer) => putSetting(writer, 'served-settings', value));
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to record the settings of the server');
  }
}

/** Removes the record at an orderly stop, unless another server has replaced it. Logs a failure. */
export async function forgetServedSettings(
  { db, log }: DatabaseContext & LogContext,
  instance: string,
): Promise<void> {
  try {
    await db.write(async (writer) => {
      if ((await servedSettings(writer))?.instance === instance) {
        await deleteSettings(writer, ['served-settings']);
      }
    });
  } catch (error) {
    log.warn({ reason: describeFileError(error) }, 'failed to remove the recorded settings of the server');
  }
}

/** The problem of a certificate that HTTPS of the vault itself needs. */
export function neededForHttps(name: string): Problem {
  return new Problem('certificate_in_use', {
    detail: `Certificate "${name}" is in use: the vault serves HTTPS with it.`,
    hint: 'Clients that pin its key would lose access. Set another certificate with --tls-certificate first, or add --force.',
  });
}
