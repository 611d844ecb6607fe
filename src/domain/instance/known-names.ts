/** The names in a vault, for the completion of shells: read at once, without opening the vault. */
import { type KnownNames, knownNames, readKnownNames } from '../../db/known-names.ts';

/** What has names that commands take. */
export const nameKinds = knownNames;

export type NameKind = KnownNames;

/** At most a thousand names of this kind, in order. Throws where the directory has no vault. */
export function namesInVault(dataDir: string, kind: NameKind): string[] {
  return readKnownNames(dataDir, kind);
}
