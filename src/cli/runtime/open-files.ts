/** The limit of open files of this process. */
import { readFileSync } from 'node:fs';

/** Files of the vault itself, and connections to databases, CAs and name servers. */
const reserved = 500;

/** How many connections the process can keep in addition to `most` others; undefined if the system does not tell. */
export function connectionsBeside(most: number): number | undefined {
  const limit = openFileLimit();
  return limit === undefined ? undefined : Math.max(0, limit - most - reserved);
}

function openFileLimit(): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    // Only Linux has this file.
    return undefined;
  }
}
