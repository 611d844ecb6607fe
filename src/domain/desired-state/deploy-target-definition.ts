/** Deploy targets as the document of `vault apply` has them: their certificates, never their settings. */
import type { Secret } from '../../base/secret.ts';
import type { Reader } from '../../db/database.ts';
import { listDeployTargets, listTargetCertificates } from '../../db/tables/deploy-targets.ts';
import type { KeyringContext } from '../contexts.ts';
import { openFor, targetSettingsOwner } from '../sealed-secrets.ts';
import type { Definition } from './definition.ts';
import type { StateIssue } from './desired-state.ts';
import type { PlanOptions } from './state-plan.ts';
import type { VaultState } from './vault-state.ts';
import type { WantedDeployTarget, WantedState } from './wanted-state.ts';

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

/** All that speaks against the deploy targets of a desired state. */
export function deployTargetIssues(
  state: VaultState,
  wanted: WantedState,
  { others, protectedCertificates }: PlanOptions,
): StateIssue[] {
  const held = new Set([...state.certificates.keys(), ...state.imported_certificates.keys()]);
  const staying = others === 'stay' ? [...held] : protectedCertificates.filter((name) => held.has(name));
  const known = new Set([...wanted.certificates.keys(), ...wanted.imported_certificates.keys(), ...staying]);
  return [...wanted.deploy_targets].flatMap(([name, { input, secret }]) => {
    const path = ['deploy_targets', name];
    const type = state.deploy_targets.get(name)?.definition.type;
    if (type !== undefined && type !== input.type) {
      const message = `deploy target ${name} is of type ${type}, which cannot be changed; choose another name`;
      return [{ path: [...path, 'type'], message }];
    }
    const isWithout = type === undefined && secret === undefined;
    const message = 'missing for a new deploy target; name the file with its settings: {file: NAME}';
    const issues: StateIssue[] = isWithout ? [{ path: [...path, 'secret'], message }] : [];
    for (const [index, certificate] of input.certificates.entries()) {
      if (known.has(certificate)) continue;
      issues.push({
        path: [...path, 'certificates', index],
        message: held.has(certificate)
          ? `certificate ${certificate} would be removed, but this target lists it`
          : `unknown certificate ${JSON.stringify(certificate)}`,
      });
    }
    return issues;
  });
}
