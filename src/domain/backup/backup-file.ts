/** Backup files: drafts under names that no backup has, the page at the end of a file, and verification. */
import { createHash } from 'node:crypto';
import {
  appendFileSync,
  closeSync,
  createReadStream,
  createWriteStream,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { removeFile, staleDrafts, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { sameBytes } from '../../crypto/secrets/constant-time.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import { DatabaseCopy, unknownMigrations } from '../../db/database-copy.ts';
import {
  lastLineSize,
  type Manifest,
  type ManifestPage,
  pageBody,
  pageEnd,
  pageSize,
  readPage,
} from './backup-manifest.ts';

/** A draft, or a file that the engine left beside one. */
const draftName = /^\.vault-backup-[0-9a-f]{16}\.draft(-[a-z]+)?$/;

/**
 * Creates an empty file of mode 0600 in the directory, and removes drafts that a killed process left there a day ago.
 */
export function newDraft(directory: string, world: World): string {
  const isDraft = (name: string) => draftName.test(name);
  for (const stale of staleDrafts(directory, isDraft, world.now())) new DatabaseCopy(stale).remove();
  const draft = join(directory, `.vault-backup-${world.randomBytes(8).toString('hex')}.draft`);
  closeSync(openSync(draft, 'wx', 0o600));
  return draft;
}

/** Appends the page with the manifest to a copy of the database, and makes the file durable. */
export async function sealDraft(draft: string, manifest: Manifest, masterKey: MasterKey): Promise<void> {
  appendFileSync(draft, pageBody(manifest));
  const digest = await digestOf(draft, statSync(draft).size);
  appendFileSync(draft, pageEnd(digest, macOf(masterKey, digest)));
  syncPath(draft);
}

/** Errors of hard links on FAT, exFAT and SMB. */
const hasNoLinks = /^(EPERM|ENOTSUP|EOPNOTSUPP|ENOSYS)$/;

/** Gives a finished draft its name, durably. `existing` decides whether an earlier backup of that name is replaced. */
export function publishDraft(draft: string, file: string, existing: 'refuse' | 'replace'): void {
  if (existing === 'replace') renameSync(draft, file);
  else {
    // Unlike a rename, a link never replaces a file that appeared meanwhile.
    try {
      linkSync(draft, file);
      removeFile(draft);
    } catch (error) {
      if (!hasNoLinks.test(String((error as NodeJS.ErrnoException).code))) throw error;
      // Nor does an exclusive create.
      closeSync(openSync(file, 'wx', 0o600));
      try {
        renameSync(draft, file);
      } catch (failure) {
        removeFile(file);
        throw failure;
      }
    }
  }
  syncPath(dirname(file));
}

/** Throws OperatorError unless a backup may be written to this name. Writes nothing. */
export function refuseTarget(file: string, existing: 'refuse' | 'replace'): void {
  const there = lstatSync(file, { throwIfNoEntry: false });
  if (there === undefined) return;
  if (there.isDirectory()) {
    throw new OperatorError(`${file} is a directory`, {
      hint: `Name a file in the directory: ${join(file, 'vault.backup')}`,
    });
  }
  if (existing === 'refuse') {
    throw new OperatorError(`${file} already exists`, { hint: 'Choose another name, or add --replace.' });
  }
  // Only a backup is replaced: a wrong name must not destroy another file.
  if (!there.isFile() || typeof readManifestPage(file) === 'string') {
    throw new OperatorError(`${file} exists and is not a vault backup`, {
      hint: 'Choose another name; --replace replaces only backups.',
    });
  }
}

/** The page at the end of a file, or why there is none. Throws the system error if the file cannot be read. */
export function readManifestPage(file: string): ReturnType<typeof readPage> {
  const descriptor = openSync(file, 'r');
  try {
    const page = Buffer.alloc(pageSize);
    const { size } = fstatSync(descriptor);
    if (size < pageSize) return 'none';
    readSync(descriptor, page, 0, pageSize, size - pageSize);
    return readPage(page);
  } finally {
    closeSync(descriptor);
  }
}

/**
 * Reads the page of a backup and verifies the checksum of the whole file. Throws OperatorError if it is not a backup,
 * is incomplete or modified, or comes from a vault that is too new.
 */
export async function readBackup(file: string): Promise<ManifestPage> {
  const page = readManifestPage(file);
  if (page === 'newer') {
    throw new OperatorError(`${file} was written by a newer vault`, {
      hint: 'Restore it with that version of the vault.',
    });
  }
  if (page === 'none') {
    throw new OperatorError(`${file} is not a vault backup, or is truncated`, {
      hint: 'Use a file written by "vault backup". If the copy was interrupted, copy the file again.',
    });
  }
  const { size } = statSync(file);
  const isWhole =
    page !== 'damaged' &&
    page.manifest.database_size === size - pageSize &&
    // biome-ignore lint/plugin/compared-secrets: a digest stored in the file.
    (await digestOf(file, size - lastLineSize)).equals(page.digest);
  if (!isWhole) {
    throw new OperatorError(`${file} is damaged: its checksum does not match`, {
      hint: 'Copy the file again from its source, or use another backup.',
    });
  }
  return page;
}

/**
 * Throws OperatorError unless the backup is complete, consistent, and made by a vault with this master key that is not
 * newer. Errors call it `name`. Reads everything, writes nothing. Quotes nothing that the key does not authenticate:
 * anyone can compute the checksum.
 */
export async function checkBackup(file: string, masterKey: MasterKey, name = file): Promise<ManifestPage> {
  const page = await readBackup(file);
  const { manifest, digest, mac } = page;
  if (!sameBytes(mac, macOf(masterKey, digest))) {
    throw new OperatorError(`${name} was modified: the master key of its vault does not authenticate it`, {
      hint: 'Someone without access to the vault modified the file. Use another backup, and find out who can write to this one.',
    });
  }
  const newer = unknownMigrations(manifest.schema);
  if (newer.length > 0) {
    throw new OperatorError(
      `${name} was written by a newer vault, ${manifest.vault_version} (its schema has ${newer.join(', ')})`,
      { hint: 'Restore it with that version of the vault or a later one.' },
    );
  }
  const { schema, counts } = new DatabaseCopy(file).examine(name);
  const isAsSaid =
    JSON.stringify(schema) === JSON.stringify(manifest.schema) && isSame(counts, manifest.counts);
  if (!isAsSaid)
    throw new OperatorError(`the contents of ${name} do not match its manifest`, {
      hint: 'Use another backup.',
    });
  return page;
}

/**
 * Copies the database of a checked backup into a new file of mode 0600. Throws OperatorError if the backup has changed
 * since.
 */
export async function copyOut(
  file: string,
  { manifest, digest }: Pick<ManifestPage, 'manifest' | 'digest'>,
  copy: string,
): Promise<void> {
  const hash = createHash('sha256');
  const source = createReadStream(file, { end: manifest.database_size - 1, highWaterMark: 1_048_576 });
  const target = createWriteStream(copy, { flags: 'wx', mode: 0o600 });
  await pipeline(
    source,
    async function* (chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk);
        yield chunk;
      }
    },
    target,
  );
  const body = createReadStream(file, {
    start: manifest.database_size,
    end: manifest.database_size + pageSize - lastLineSize - 1,
  });
  for await (const chunk of body) hash.update(chunk as Buffer);
  // biome-ignore lint/plugin/compared-secrets: a digest stored in the file; its MAC is compared in constant time.
  if (!hash.digest().equals(digest)) {
    throw new OperatorError(`${file} changed while it was being read`, {
      hint: 'Try again when no other program writes to the file.',
    });
  }
}

/** SHA-256 of the first `length` bytes. */
export async function digestOf(file: string, length: number): Promise<Buffer> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { end: length - 1, highWaterMark: 1_048_576 })) {
    hash.update(chunk as Buffer);
  }
  return hash.digest();
}

/** One-line summary of a backup. */
export function aboutBackup(name: string, { created_at, counts }: Manifest): string {
  const number = (rows = 0, thing = '') => `${rows} ${thing}${rows === 1 ? '' : 's'}`;
  const parts = [
    number(counts.certificates, 'certificate'),
    number(counts.certificate_versions, 'version'),
    number(counts.api_keys, 'API key'),
  ];
  return `${name}: ${parts.join(', ')}, as of ${created_at}`;
}

function macOf(masterKey: MasterKey, digest: Buffer): Buffer {
  return masterKey.authenticate('authenticate: backup', digest);
}

function isSame(a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
