/** What is impossible about the API keys of a desired state. */
import { parseTimestamp } from '../../base/timestamp.ts';
import type { StateIssue } from './desired-state.ts';
import type { PlanOptions } from './state-plan.ts';
import type { VaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

/** All that speaks against its API keys. */
export function apiKeyIssues(
  state: VaultState,
  wanted: WantedState,
  options: PlanOptions,
  now: number,
): StateIssue[] {
  const certificates = new Set([...wanted.certificates.keys(), ...wanted.imported_certificates.keys()]);
  const held = new Set([...state.certificates.keys(), ...state.imported_certificates.keys()]);
  const staying = options.others === 'stay' ? held : options.protectedCertificates;
  for (const name of staying) if (held.has(name)) certificates.add(name);
  return [...wanted.api_keys].flatMap(([name, key]) => {
    const issues: StateIssue[] = [];
    const known = state.api_keys.get(name);
    const namesakes = known === undefined ? keysCalled(state, name) : [];
    if (namesakes.length > 0) {
      const message = `${namesakes.length} API keys have this name; write ${namesakes.join(' or ')}`;
      issues.push({ path: ['api_keys', name], message });
    }
    const expiry = known?.definition.expires_at;
    const isOld = expiry !== undefined && parseTimestamp(String(expiry)) === key.expires_at;
    if (key.expires_at !== undefined && key.expires_at <= now && !isOld) {
      issues.push({ path: ['api_keys', name, 'expires_at'], message: 'is not in the future' });
    }
    if (key.certificates === 'any') return issues;
    for (const [index, certificate] of key.certificates.entries()) {
      if (certificates.has(certificate)) continue;
      const message = held.has(certificate)
        ? `certificate ${certificate} would be removed, but this key lists it`
        : `unknown certificate ${JSON.stringify(certificate)}`;
      issues.push({ path: ['api_keys', name, 'certificates', index], message });
    }
    return issues;
  });
}

/** The distinct names of the keys that share this one. */
function keysCalled({ api_keys }: VaultState, name: string): string[] {
  return [...api_keys]
    .filter(([, held]) => held.sharedName === name)
    .map(([distinct]) => JSON.stringify(distinct));
}
