/** What a server records of its settings, without secrets, and in which form. */
import { z } from 'zod';

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

/** What a server of this database uses, or used when it was killed. */
export type ServedSettings = z.output<typeof schema>;

/** The settings as they are recorded. */
export function servedSettingsText(settings: ServedSettings): string {
  return JSON.stringify(schema.parse(settings));
}

/** Undefined where it is damaged, so that nothing is known. */
export function parseServedSettings(recorded: string): ServedSettings | undefined {
  try {
    return schema.safeParse(JSON.parse(recorded)).data;
  } catch {
    // Not JSON: damaged.
    return undefined;
  }
}
