/** Deploy targets as the document of `vault apply` has them: their certificates, never their settings. */
import type { Secret } from '../../base/secret.ts';
import type { Reader } from '../../db/database.ts';
import { listDeployTargets, listTargetCertificates } from '../../db/tables/deploy-targets.ts';
import type { KeyringContext } from '../contexts.ts';
import { openFor, targetSettingsOwner } from '../sealed-secrets.ts';
import type { Definition } from './definition.ts';
import type { WantedDeployTarget } from './wanted-state.ts';

export type HeldDeployTarget = { readonly definition: Definition; readonly secret: () => Secret };

/** The targets of the vault by name, or those with these names. */
export async function deployTargetsOf(
  vault: KeyringContext,
  reader: Reader,
  names?: readonly string[],
): Promise<Map<string, HeldDeployTarget>> {
  const held = new Map<string, HeldDeployTarget>();
  for (const { id, name, type, sealed_settings: sealed } of await listDeployTargets(reader)) {
    if (names?.includes(name) === false) continue;
    const certificates = (await listTargetCertificates(reader, id)).map(({ certificate }) => certificate);
    const secret = () => openFor(vault, targetSettingsOwner(id), sealed);
    held.set(name, { definition: { type, certificates }, secret });
  }
  return held;
}

/** The definition that the document wants. */
export function wantedDeployTarget({ input: { type, certificates } }: WantedDeployTarget): Definition {
  return { type, certificates };
}
