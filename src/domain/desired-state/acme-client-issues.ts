/** What is impossible about the ACME clients of a desired state. */
import { parseTimestamp } from '../../base/timestamp.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import type { StateIssue } from './desired-state.ts';
import { isPrivateCa, profilesOf } from './issuer-settings.ts';
import type { PlanOptions } from './state-plan.ts';
import type { VaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

/** All that speaks against its ACME clients. */
export function acmeClientIssues(
  state: VaultState,
  wanted: WantedState,
  options: PlanOptions,
  now: number,
): StateIssue[] {
  const both = { state, wanted };
  const issuers = new Set([...wanted.issuers.keys(), localCaName]);
  if (options.others === 'stay') for (const name of state.issuers.keys()) issuers.add(name);
  return [...wanted.acme_clients].flatMap(([name, client]) => {
    const issues: StateIssue[] = [];
    const complain = (path: readonly (string | number)[], message: string) =>
      issues.push({ path: ['acme_clients', name, ...path], message });
    const held = state.acme_clients.get(name);
    if (held?.isRevoked === true) {
      complain([], 'is revoked and keeps its name; delete it with "vault acme-client delete"');
      return issues;
    }
    const expiry = held?.definition.expires_at;
    const isOld = expiry !== undefined && parseTimestamp(String(expiry)) === client.expires_at;
    if (client.expires_at !== undefined && client.expires_at <= now && !isOld) {
      complain(['expires_at'], 'is not in the future');
    }
    for (const [index, issuer] of client.issuers.entries()) {
      if (issuers.has(issuer)) continue;
      const isKnown = state.issuers.has(issuer);
      const quoted = JSON.stringify(issuer);
      complain(
        ['issuers', index],
        isKnown ? `issuer ${issuer} would be removed; add it to issuers` : `unknown issuer ${quoted}`,
      );
    }
    for (const [index, reference] of client.profiles.entries()) {
      const [issuer = '', profile = ''] = reference.split('/');
      if (!client.issuers.includes(issuer) || !isPrivateCa(both, issuer)) {
        complain(['profiles', index], `${reference} names no private CA among the issuers of the client`);
      } else if (!profilesOf(both, issuer).includes(profile)) {
        complain(['profiles', index], `issuer ${issuer} has no profile ${JSON.stringify(profile)}`);
      }
    }
    return issues;
  });
}
