/**
 * Restores a backup into the empty database of a server. As in any restore, the backup is first opened and migrated in
 * a file of the data directory, then copied from there in one transaction.
 */
import { linkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { makeDurableDirectory, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { World } from '../../base/world.ts';
import { Keyring } from '../../crypto/secrets/keyring.ts';
import { keyFileContent } from '../../crypto/secrets/master-key-file.ts';
import { Database } from '../../db/database.ts';
import type { ServerOptions } from '../../db/engine.ts';
import { fillDatabase, refuseFilled } from '../database-copy/filled-database.ts';
import { masterKeyFits } from '../master-key/master-key-check.ts';
import { copyOut } from './backup-file.ts';
import { checkRestorable, openOnce, type Restorable, type RestoreOrder, told } from './restore.ts';
import { draftFor, placeOf, removeDraft, writeKeyDraft } from './restore-drafts.ts';

/**
 * Restores into the database at `url`, and returns its place. Throws OperatorError, having changed nothing, if it is
 * not empty. A master key that was in the backup is in its file afterwards.
 */
export async function restoreIntoServer(
  world: World,
  order: RestoreOrder,
  url: string,
  surroundings: Pick<ServerOptions, 'environment' | 'home'> = {},
): Promise<Restorable & { readonly place: string }> {
  const { file, dataDir, masterKeyFile } = order;
  if (order.existing === 'replace') {
    throw new OperatorError('a vault on a PostgreSQL server is not replaced', {
      hint: 'Restore into an empty database: create one, and name it with --database. Nothing was changed.',
    });
  }
  const keyPath = placeOf(masterKeyFile);
  const restorable = await checkRestorable(order);
  const target = await Database.connect(url, {
    ...surroundings,
    world,
    directory: dataDir,
    connections: 1,
  });
  const draft = draftFor(join(dataDir, 'vault.db'), world);
  const key = { from: draftFor(keyPath, world), to: keyPath };
  try {
    await refuseFilled({ reader: target.reader, place: target.place });
    makeDurableDirectory(dataDir);
    await copyOut(file, restorable, draft);
    await openOnce(world, draft, order, restorable);
    if (restorable.keyIs === 'in the backup') {
      writeKeyDraft(key.from, keyFileContent(world, restorable.masterKey, await order.freshLock()));
    }
    await fillFrom(
      draft,
      target,
      { world, keyring: new Keyring(masterKeyFile, restorable.masterKey) },
      () => {
        if (restorable.keyIs === 'there') return;
        // Without the key, what is committed next could not be opened. A link never replaces another key.
        linkSync(key.from, key.to);
        syncPath(dirname(key.to));
      },
    );
    return { ...restorable, place: target.place };
  } catch (error) {
    throw told(error, dataDir);
  } finally {
    await target.close();
    removeDraft(draft);
    removeDraft(key.from);
  }
}

async function fillFrom(
  draft: string,
  target: Database,
  parts: { readonly world: World; readonly keyring: Keyring },
  settle: () => void,
): Promise<void> {
  const db = await Database.open(draft, parts.world);
  try {
    await masterKeyFits({ db, ...parts });
    await fillDatabase({ db, ...parts, reader: db.reader }, target, { settle: async () => settle() });
  } finally {
    await db.close();
  }
}
