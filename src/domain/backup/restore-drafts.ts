/** The new files of a restore before they have their names, beside those whose place they will take. */
import { lstatSync, readdirSync, readlinkSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { makeDurableDirectory, removeFile, staleDrafts, syncPath } from '../../base/durable-file.ts';
import { OperatorError } from '../../base/operator-error.ts';
import type { Secret } from '../../base/secret.ts';
import type { World } from '../../base/world.ts';

/**
 * The file that a restore puts in the place of `path`: where a symbolic link leads, so that database and key stay on
 * the disks that were chosen for them. Throws OperatorError where the link leads nowhere.
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

/** A name for what will be called `path`. What a killed restore left there a day ago is removed. */
export function draftFor(path: string, world: World): string {
  const prefix = `${path}.restoring-`;
  const isDraft = (name: string) => name.startsWith(basename(prefix));
  for (const stale of staleDrafts(dirname(path), isDraft, world.now())) removeFile(stale);
  return `${prefix}${world.randomBytes(8).toString('hex')}`;
}

/** Removes a draft, and what the engine and a migration have left beside it. */
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
    // The directory is not there, so neither is a draft.
    return [];
  }
}
