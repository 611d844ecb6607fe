/** A directory for the vaults of a benchmark. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** On the disk of the project, because writes to a memory file system need no fsync. */
const scratch = join(import.meta.dirname, '..', 'build');

/** Runs `work` with a new directory, and removes the directory afterwards. */
export async function inScratch<T>(work: (directory: string) => Promise<T>): Promise<T> {
  mkdirSync(scratch, { recursive: true });
  const directory = mkdtempSync(join(scratch, 'bench-'));
  try {
    return await work(directory);
  } finally {
    rmSync(directory, { recursive: true });
  }
}
