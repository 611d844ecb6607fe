/**
 * The page at the end of a backup, after a plain SQLite database that any tool opens. The page describes the backup in
 * text, and ends with a checksum of everything before and a MAC by the master key. `tail -c 4096` shows it.
 */
import { z } from 'zod';
import type { PassphraseSealed } from '../../crypto/secrets/passphrase-key.ts';

/** Bytes of the page, the same as SQLite's own. */
export const pageSize = 4096;

const firstLine =
  'Certificate Vault backup: before this page stands a SQLite database; "vault restore FILE" puts it back.\n';

const lastLine = /^\nsha256 ([0-9a-f]{64}) mac ([0-9a-f]{64})\n$/;

/** Bytes of the last line, which the checksum does not cover. */
export const lastLineSize = `\nsha256 ${'0'.repeat(64)} mac ${'0'.repeat(64)}\n`.length;

const count = z.int().min(0);
const bytes = z.base64().max(1024);

export const manifestSchema = z.looseObject({
  format: z.literal(1),
  vault_version: z.string().regex(/^[0-9A-Za-z.+-]{1,64}$/),
  created_at: z.iso.datetime(),
  /** The id of the copied vault; older vaults had none. */
  vault_id: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional(),
  /** Numbers the backups of a schedule, from 1; other backups and those of older vaults have none. */
  number: z.int().min(1).optional(),
  /** Master keys that the sealed secrets need. */
  key_ids: z.array(z.string().regex(/^[0-9a-f]{16}$/)).min(1),
  database_size: z.int().min(512),
  schema: z.array(z.string().regex(/^[0-9A-Za-z_-]{1,64}$/)),
  counts: z.record(z.string(), count),
  /** Superseded versions that the vault had removed by then. */
  pruned_versions: count.optional(),
  sealed_master_key: z
    .strictObject({
      kdf: z.literal('argon2id'),
      memory: count,
      passes: count,
      parallelism: count,
      salt: bytes,
      cipher: z.literal('aes-256-gcm'),
      nonce: bytes,
      sealed: bytes,
    })
    .optional(),
});

export type Manifest = Readonly<z.output<typeof manifestSchema>> & {
  readonly sealed_master_key?: PassphraseSealed | undefined;
};

/** The manifest, and the checksum and MAC of the last line. */
export type ManifestPage = { readonly manifest: Manifest; readonly digest: Buffer; readonly mac: Buffer };

/** The page without its last line. */
export function pageBody(manifest: Manifest): Buffer {
  const text = Buffer.from(`${firstLine}${JSON.stringify(manifest, null, 1)}\n`);
  const room = pageSize - lastLineSize;
  if (text.length > room) throw new Error('the manifest of a backup does not fit on its page');
  return Buffer.concat([text, Buffer.alloc(room - text.length, ' ')]);
}

/** The last line: SHA-256 of everything before it, and the MAC of that. */
export function pageEnd(digest: Buffer, mac: Buffer): Buffer {
  return Buffer.from(`\nsha256 ${digest.toString('hex')} mac ${mac.toString('hex')}\n`);
}

/**
 * Parses a page. `none` if it is not a manifest page, `newer` if a later vault wrote it in an unknown format, `damaged`
 * if it is corrupt.
 */
export function readPage(page: Buffer): ManifestPage | 'none' | 'newer' | 'damaged' {
  const begins =
    page.length === pageSize && page.subarray(0, firstLine.length).equals(Buffer.from(firstLine));
  if (!begins) return 'none';
  const [, digest, mac] = lastLine.exec(page.subarray(-lastLineSize).toString('latin1')) ?? [];
  if (digest === undefined || mac === undefined) return 'damaged';
  let said: unknown;
  try {
    said = JSON.parse(page.subarray(firstLine.length, -lastLineSize).toString());
  } catch {
    // Bytes were changed; the checksum would fail too.
    return 'damaged';
  }
  const { data: manifest } = manifestSchema.safeParse(said);
  if (manifest === undefined) return hasLaterFormat(said) ? 'newer' : 'damaged';
  return { manifest, digest: Buffer.from(digest, 'hex'), mac: Buffer.from(mac, 'hex') };
}

function hasLaterFormat(said: unknown): boolean {
  return Number((said as { format?: unknown } | null)?.format) > 1;
}
