/**
 * The files that hold master keys: 32 bytes, or those bytes sealed under a passphrase. They are made once, durably, and
 * never overwritten by another key: whoever loses one loses every private key that it sealed.
 */
import {
  closeSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { z } from 'zod';
import { staleDrafts, syncPath } from '../base/durable-file.ts';
import { OperatorError } from '../base/operator-error.ts';
import { Secret } from '../base/secret.ts';
import { describeSystemError } from '../base/system-error.ts';
import type { World } from '../base/world.ts';
import { MasterKey, masterKeySize } from './master-key.ts';
import type { PassphraseKey, PassphraseSealed } from './passphrase-key.ts';

/** What a file says without any passphrase. `id` is the key's, in hexadecimal. */
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

/** Larger files are no keys. */
const largestFile = 4096;

/** The file, or undefined where there is none. Throws OperatorError where it cannot hold a key. `-` is standard input. */
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

/** The key in a file that is not sealed, or undefined where there is no file. Throws OperatorError. */
export function readMasterKey(path: string): MasterKey | undefined {
  const file = readKeyFile(path);
  if (file?.kind !== 'sealed') return file?.key;
  throw new OperatorError(`the master key in ${path} is sealed under a passphrase`, {
    hint: 'Set --master-key-passphrase-file to the file that contains the passphrase.',
  });
}

/** The key in a file, or undefined where `lock` is none or another's. */
export function keyIn(file: KeyFile, lock: PassphraseKey | undefined): MasterKey | undefined {
  if (file.kind === 'plain') return file.key;
  const opened = lock?.open(contextFor(file.id), file.sealed);
  if (opened?.expose().length !== masterKeySize) return undefined;
  const key = new MasterKey(opened);
  return key.name === file.id ? key : undefined;
}

/** What a file with the key holds: sealed, where there is a passphrase. */
export function keyFileContent(world: World, key: MasterKey, lock: PassphraseKey | undefined): Secret {
  if (lock === undefined) return key.exported();
  const sealed = lock.seal(world, contextFor(key.name), key.exported());
  const said = { certificate_vault_master_key: 1, id: key.name, ...sealed };
  return new Secret(Buffer.from(`${JSON.stringify(said, null, 1)}\n`));
}

/** What a key that is sealed under a passphrase is said to be; it opens for nothing else. */
export function contextFor(keyId: string): string {
  return `certificate-vault v1 master key ${keyId}`;
}

/** A new key. */
export function newMasterKey(world: World): MasterKey {
  return new MasterKey(new Secret(world.randomBytes(masterKeySize)));
}

/**
 * Makes the file with a new key, mode 0600, fsynced with its directory; a file that appears first wins. Returns the key in it,
 * or undefined where another lock has sealed it.
 */
export function createMasterKey(path: string, world: World, lock?: PassphraseKey): MasterKey | undefined {
  writeKeyFile(world, path, keyFileContent(world, newMasterKey(world), lock), 'keep');
  const file = readKeyFile(path);
  if (file === undefined)
    throw new OperatorError(`the master key file ${path} disappeared while it was created`);
  return keyIn(file, lock);
}

/**
 * Writes a file of mode 0600 that appears whole and durably under its name. `existing` says what becomes of one that is
 * there: it is kept, and the new one forgotten, or the new one takes its place at once.
 */
export function writeKeyFile(
  world: World,
  path: string,
  content: Secret,
  existing: 'keep' | 'replace',
): void {
  const draft = join(dirname(path), `.master.key.${world.randomBytes(8).toString('hex')}`);
  try {
    // Each may be a second name of a key that is to go or to be sealed.
    for (const stale of staleDrafts(dirname(path), (name) => draftName.test(name), world.now())) {
      removeIfThere(stale);
    }
    const file = openSync(draft, 'wx', 0o600);
    try {
      // All of it, or an error: the system may take less than it is given.
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
    rmSync(draft, { force: true });
  } catch {
    // What cannot be removed was not made here, or another error tells of the same.
  }
}

function linkUnlessThere(draft: string, path: string): void {
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  } finally {
    unlinkSync(draft);
  }
}

function sealedIn(content: Buffer): { id: string; sealed: PassphraseSealed } | undefined {
  if (content.length > largestFile || content[0] !== '{'.charCodeAt(0)) return undefined;
  try {
    const { certificate_vault_master_key: _, id, ...sealed } = sealedFile.parse(JSON.parse(`${content}`));
    return { id, sealed };
  } catch {
    // Whatever it is, it is not what this vault has written; who asks says so.
    return undefined;
  }
}
