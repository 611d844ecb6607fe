/** Drafts of a restore: new files beside those that they will replace. */
import { lstatSync, readdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeDurableDirectory, removeFile, staleDrafts, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';

/**
 * The file that a restore replaces for `path`: the target of a symbolic link, so that database and key stay on the
 * disks chosen for them. Throws OperatorError if the target is missing.
 */
export function placeOf(path: string): string {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return path;
  try {
    return realpathSync(path);
  } catch (error) {
    throw new OperatorError(`${path} is a symbolic link to ${readlinkSync(path)}, which is missing`, {
      hint: 'Mount the disk of the target, or remove the link. Nothing was changed.',
      cause: error,
    });
  }
}

/** Returns a draft name for `path`. Removes drafts that a killed restore left there a day ago. */
export function draftFor(path: string, world: World): string {
  const prefix = `${path}.restoring-`;
  const isDraft = (name: string) => name.startsWith(basename(prefix));
  for (const stale of staleDrafts(dirname(path), isDraft, world.now())) removeFile(stale);
  return `${prefix}${world.randomBytes(8).toString('hex')}`;
}

/** Removes a draft, and files that the engine and a migration left beside it. */
export function removeDraft(draft: string): void {
  for (const path of startingWith(draft)) removeFile(path);
}

/** Writes the key file with mode 0600, and makes content and name durable: no other code syncs its directory. */
export function writeKeyDraft(draft: string, content: Secret): void {
  makeDurableDirectory(dirname(draft));
  writeFileSync(draft, content.expose(), { flag: 'wx', mode: 0o600 });
  syncPath(draft);
  syncPath(dirname(draft));
}

function startingWith(path: string): string[] {
  try {
    const names = readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)));
    return names.map((name) => join(dirname(path), name));
  } catch {
    // The directory is missing, so there is no draft.
    return [];
  }
}
