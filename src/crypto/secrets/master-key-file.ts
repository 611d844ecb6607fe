/**
 * Master key files: 32 bytes, or those bytes sealed under a passphrase. They are created once, durably, and never
 * overwritten by another key, because losing a key means losing every private key that it sealed.
 */
import { closeSync, fsyncSync, linkSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { removeFile, staleDrafts, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import { Secret } from '../../base/secret.ts';
import { describeSystemError } from '../../base/system-error.ts';
import type { World } from '../../base/world.ts';
import { MasterKey, masterKeySize } from './master-key.ts';
import type { PassphraseKey, PassphraseSealed } from './passphrase-key.ts';

/** What is known about a file without a passphrase. `id` is the id of the key, in hexadecimal. */
export type KeyFile = { readonly path: string; readonly id: string } & (
  | { readonly kind: 'plain'; readonly key: MasterKey }
  | { readonly kind: 'sealed'; readonly sealed: PassphraseSealed }
);

const bytes = z.base64().max(1024);
const cost = z.int().min(1);

const sealedFile = z.strictObject({
  certificate_vault_master_key: z.literal(1),
  id: z.string().regex(/^[0-9a-f]{16}$/),
  kdf: z.literal('argon2id'),
  memory: cost,
  passes: cost,
  parallelism: cost,
  salt: bytes,
  cipher: z.literal('aes-256-gcm'),
  nonce: bytes,
  sealed: bytes,
});

const draftName = /^\.master\.key\.[0-9a-f]{16}$/;

/** Larger files are not keys. */
const largestFile = 4096;

/**
 * The file, or undefined if it does not exist. Throws OperatorError if it cannot contain a key. `-` is standard input.
 */
export function readKeyFile(path: string): KeyFile | undefined {
  let content: Buffer;
  try {
    content = readFileSync(path === '-' ? 0 : path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new OperatorError(`cannot read the master key file ${path}: ${describeSystemError(error)}`, {
      hint: 'Run the command as the user that owns the vault, or set --master-key-file to the right file.',
      cause: error,
    });
  }
  if (content.length === masterKeySize) {
    const key = new MasterKey(new Secret(content));
    return { path, id: key.name, kind: 'plain', key };
  }
  const sealed = sealedIn(content);
  if (sealed !== undefined) return { path, kind: 'sealed', ...sealed };
  throw new OperatorError(
    `${path} is not a master key: it has ${content.length} bytes instead of ${masterKeySize}, and is not sealed`,
    { hint: 'Restore the original file, or set --master-key-file to the right one.' },
  );
}

/** The key in a file that is not sealed, or undefined if the file does not exist. Throws OperatorError. */
export function readMasterKey(path: string): MasterKey | undefined {
  const file = readKeyFile(path);
  if (file?.kind !== 'sealed') return file?.key;
  throw new OperatorError(`the master key in ${path} is sealed under a passphrase`, {
    hint: 'Set --master-key-passphrase-file to the file that contains the passphrase.',
  });
}

/** The key in a file, or undefined if `lock` is missing or wrong. */
export function keyIn(file: KeyFile, lock: PassphraseKey | undefined): MasterKey | undefined {
  if (file.kind === 'plain') return file.key;
  const opened = lock?.open(contextFor(file.id), file.sealed);
  if (opened?.expose().length !== masterKeySize) return undefined;
  const key = new MasterKey(opened);
  return key.name === file.id ? key : undefined;
}

/** The content of a file with the key; sealed if there is a passphrase. */
export function keyFileContent(world: World, key: MasterKey, lock: PassphraseKey | undefined): Secret {
  if (lock === undefined) return key.exported();
  const sealed = lock.seal(world, contextFor(key.name), key.exported());
  const said = { certificate_vault_master_key: 1, id: key.name, ...sealed };
  return new Secret(Buffer.from(`${JSON.stringify(said, null, 1)}\n`));
}

/** The context that binds a sealed key to its id. */
export function contextFor(keyId: string): string {
  return `certificate-vault v1 master key ${keyId}`;
}

/** A new key. */
export function newMasterKey(world: World): MasterKey {
  return new MasterKey(new Secret(world.randomBytes(masterKeySize)));
}

/**
 * Creates the file with a new key, mode 0600, fsynced with its directory; if the file appears meanwhile, it wins.
 * Returns the key in it, or undefined if it is sealed under another passphrase.
 */
export function createMasterKey(path: string, world: World, lock?: PassphraseKey): MasterKey | undefined {
  writeKeyFile(world, path, keyFileContent(world, newMasterKey(world), lock), 'keep');
  const file = readKeyFile(path);
  if (file === undefined)
    throw new OperatorError(`the master key file ${path} disappeared while it was created`);
  return keyIn(file, lock);
}

/**
 * Writes a file with mode 0600 that appears atomically and durably under its name. `existing` decides about an existing
 * file: it is kept and the new one discarded, or it is replaced.
 */
export function writeKeyFile(
  world: World,
  path: string,
  content: Secret,
  existing: 'keep' | 'replace',
): void {
  const draft = join(dirname(path), `.master.key.${world.randomBytes(8).toString('hex')}`);
  try {
    // A draft may be another name of a key that is being removed or sealed.
    for (const stale of staleDrafts(dirname(path), (name) => draftName.test(name), world.now())) {
      removeIfThere(stale);
    }
    const file = openSync(draft, 'wx', 0o600);
    try {
      // Writes everything or throws: a single write may be partial.
      writeFileSync(file, content.expose());
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    if (existing === 'replace') renameSync(draft, path);
    else linkUnlessThere(draft, path);
    syncPath(dirname(path));
  } catch (error) {
    removeIfThere(draft);
    throw new OperatorError(`cannot create the master key file ${path}: ${describeSystemError(error)}`, {
      hint: 'Use --data-dir or --master-key-file to choose a directory that this user can write to.',
      cause: error,
    });
  }
}

function removeIfThere(draft: string): void {
  try {
    removeFile(draft);
  } catch {
    // The draft was not created, or another error already reports the problem.
  }
}

function linkUnlessThere(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    removeFile(draft);
  }
}

function sealedIn(content: Buffer): { id: string; sealed: PassphraseSealed } | undefined {
  if (content.length > largestFile || content[0] !== '{'.charCodeAt(0)) return undefined;
  try {
    const { certificate_vault_master_key: _, id, ...sealed } = sealedFile.parse(JSON.parse(`${content}`));
    return { id, sealed };
  } catch {
    // The content was not written by this vault; the caller reports that.
    return undefined;
  }
}
