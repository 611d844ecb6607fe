/**
 * Seals and unseals the key files. Each file is replaced as a whole, so an interrupted run leaves some sealed, some
 * not.
 */
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { keyFilesBeside, realPath } from '../../crypto/secrets/keyring.ts';
import type { MasterKey } from '../../crypto/secrets/master-key.ts';
import {
  type KeyFile,
  keyFileContent,
  readKeyFile,
  writeKeyFile,
} from '../../crypto/secrets/master-key-file.ts';
import type { PassphraseKey } from '../../crypto/secrets/passphrase-key.ts';
import { type Actor, record } from '../audit/audit.ts';
import type { SecretsContext } from '../contexts.ts';
import { refuseDuringRotation } from './master-key-rotation.ts';

/**
 * Seals the key file and those beside it with `lock`, or unseals them without one; `keyOf` opens them. The key file is
 * last: until then the vault starts as before. Returns the paths that no known passphrase opens. Throws OperatorError.
 */
export async function sealKeyFiles(
  vault: SecretsContext,
  actor: Actor,
  lock: PassphraseKey | undefined,
  keyOf: (file: KeyFile) => Promise<MasterKey | undefined>,
): Promise<{ left: string[] }> {
  const { db, keyring, world } = vault;
  const [own, ...others] = keyFilesBeside(keyring.path);
  const files: { file: KeyFile; key: MasterKey }[] = [];
  const left: string[] = [];
  for (const file of own === undefined ? others : [...others, own]) {
    const key = await keyOf(file);
    if (key === undefined) left.push(file.path);
    else files.push({ file, key });
  }
  const action = lock === undefined ? 'master_key.unseal' : 'master_key.seal';
  await db.write(async (writer) => {
    await refuseDuringRotation(writer);
    // Rotations move files under this same lock: a key that arrived meanwhile must not be overwritten.
    for (const { file } of files) refuseMoved(file);
    const resource = `master-key:${keyring.current.name}`;
    record(writer, { actor, action, resource }, world.now());
    for (const { file, key } of files) rewrite(world, file, key, lock);
  });
  return { left };
}

function refuseMoved({ path, id }: KeyFile): void {
  if (readKeyFile(path)?.id === id) return;
  throw new OperatorError(`the master key in ${path} changed during this command`, {
    hint: 'Another process rotated the key. Nothing was changed; run the command again.',
  });
}

function rewrite(world: World, { path }: KeyFile, key: MasterKey, lock: PassphraseKey | undefined): void {
  writeKeyFile(world, realPath(path), keyFileContent(world, key, lock), 'replace');
}
