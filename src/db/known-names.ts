/** Names for shell completion: read directly, without migrating or creating anything. */
import { DatabaseFile } from './database-file.ts';
import { namesIn } from './sqlite/known-names.ts';

/** Kinds of names that commands accept. */
export const knownNames = ['certificates', 'issuers', 'dns-providers'] as const;

export type KnownNames = (typeof knownNames)[number];

/** At most a thousand names in the vault at this directory, in order. Throws if there is no vault. */
export function readKnownNames(dataDir: string, kind: KnownNames): string[] {
  return namesIn(DatabaseFile.in(dataDir).path, kind.replace('-', '_'), 1000);
}
