/** A passphrase on the key files, or none: each file is rewritten whole, so that whoever is stopped has both forms of keys. */
import type { World } from '../base/world.ts';
import { keyFilesBeside, realPath } from '../crypto/keyring.ts';
import type { MasterKey } from '../crypto/master-key.ts';
import { type KeyFile, keyFileContent, writeKeyFile } from '../crypto/master-key-file.ts';
import type { PassphraseKey } from '../crypto/passphrase-key.ts';
import { type Actor, record } from './audit.ts';
import { refuseDuringRotation } from './master-key-rotation.ts';
import type { Vault } from './vault.ts';

/**
 * Seals the key file and those beside it with `lock`, or unseals them where there is none; `keyOf` opens them. The key file
 * is last: until then the vault starts as before. Returns the paths that no passphrase at hand opens. Throws OperatorError.
 */
export async function sealKeyFiles(
  vault: Vault,
  actor: Actor,
  lock: PassphraseKey | undefined,
  keyOf: (file: KeyFile) => Promise<MasterKey | undefined>,
): Promise<{ left: string[] }> {
  const { db, keyring, world } = vault;
  await refuseDuringRotation(vault);
  const left: string[] = [];
  const [own, ...others] = keyFilesBeside(keyring.path);
  for (const file of [...others, ...(own === undefined ? [] : [own])]) {
    const key = await keyOf(file);
    if (key === undefined) left.push(file.path);
    else rewrite(world, file, key, lock);
  }
  const action = lock === undefined ? 'master_key.unseal' : 'master_key.seal';
  const event = { actor, action, resource: `master-key:${keyring.current.name}` } as const;
  await db.write((writer) => record(writer, event, world.now()));
  return { left };
}

function rewrite(world: World, { path }: KeyFile, key: MasterKey, lock: PassphraseKey | undefined): void {
  writeKeyFile(world, realPath(path), keyFileContent(world, key, lock), 'replace');
}
