/** What speaks against the deploy targets of a desired state. */
import type { StateIssue } from './desired-state.ts';
import type { PlanOptions } from './state-plan.ts';
import type { VaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

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
