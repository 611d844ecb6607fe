/** A database file with all that a transaction on another engine sees: what a backup of a vault on a server is made of. */
import type { World } from '../base/world.ts';
import type { FillFile } from './engine.ts';
import { fillNewFile } from './sqlite/filled-file.ts';
import { copyRows } from './table-rows.ts';

/** Turns the empty file at `path` into a database and fills it. What it returns rejects with CopyError, or as the engine does. */
export function fillerOf(path: string, world: World): FillFile {
  return (state, { assignedIds }) =>
    fillNewFile(path, world, async (writer, whole) => {
      await copyRows(state, writer, world);
      await whole.setAssignedIds(writer, await assignedIds(state));
    });
}
