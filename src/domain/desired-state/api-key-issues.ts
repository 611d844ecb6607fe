/** What is impossible about the API keys of a desired state. */
import { parseTimestamp } from '../../base/timestamp.ts';
import type { StateIssue } from './desired-state.ts';
import { isPrivateCa } from './issuer-settings.ts';
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
  const missing = (certificate: string, does: string) =>
    held.has(certificate)
      ? `certificate ${certificate} would be removed, but this key ${does} it`
      : `unknown certificate ${JSON.stringify(certificate)}`;
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
    const { client_certificate: bound } = key;
    // A key stays bound to a certificate that was deleted.
    const isLost = bound !== null && !held.has(bound) && known?.definition.client_certificate === bound;
    if (bound !== null && !certificates.has(bound) && !isLost) {
      issues.push({ path: ['api_keys', name, 'client_certificate'], message: missing(bound, 'is bound to') });
    }
    const unfit = bound === null ? undefined : unfitForClients(state, wanted, bound);
    if (unfit !== undefined) issues.push({ path: ['api_keys', name, 'client_certificate'], message: unfit });
    if (key.certificates === 'any') return issues;
    for (const [index, certificate] of key.certificates.entries()) {
      if (certificates.has(certificate)) continue;
      issues.push({
        path: ['api_keys', name, 'certificates', index],
        message: missing(certificate, 'lists'),
      });
    }
    return issues;
  });
}

/** Why no key can be bound to a certificate of the document. */
function unfitForClients(state: VaultState, wanted: WantedState, name: string): string | undefined {
  const certificate = wanted.certificates.get(name);
  const isPrivate = certificate !== undefined && isPrivateCa({ state, wanted }, certificate.issuer);
  if (wanted.imported_certificates.has(name) || (certificate !== undefined && !isPrivate)) {
    return `"${name}" is not issued by a private CA of the vault`;
  }
  const usage = certificate?.usage ?? 'both';
  return usage === 'both' || usage === 'client' ? undefined : `"${name}" is issued for servers only`;
}

/** The distinct names of the keys that share this one. */
function keysCalled({ api_keys }: VaultState, name: string): string[] {
  return [...api_keys]
    .filter(([, held]) => held.sharedName === name)
    .map(([distinct]) => JSON.stringify(distinct));
}
