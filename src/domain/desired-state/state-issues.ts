/** What is impossible in a desired state: reported all at once, before anything is changed or confirmed. */
import { newCertNameRule, parseNewCertName } from '../../base/cert-name.ts';
import { comparableLabel } from '../../base/label.ts';
import { Problem } from '../../base/problem.ts';
import { completeCertificate } from '../certificates/client-keys.ts';
import { knownDirectories, refuseUnsuitable } from '../issuers/issuers.ts';
import { defaultSettings } from '../private-ca/ca-settings.ts';
import { localCaName } from '../private-ca/local-ca.ts';
import {
  type CertifiedNames,
  forbiddenName,
  isConfined,
  refuseForbidden,
} from '../private-ca/permitted-names.ts';
import { unknownProfile } from '../private-ca/profile-settings.ts';
import { acmeClientIssues } from './acme-client-issues.ts';
import { apiKeyIssues } from './api-key-issues.ts';
import { deployTargetIssues } from './deploy-target-issues.ts';
import type { StateIssue } from './desired-state.ts';
import { defaultKeyTypeOf, isPrivateCa, permittedBy, profilesOf } from './issuer-settings.ts';
import type { PlanOptions } from './state-plan.ts';
import type { VaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

/** The one kind of DNS provider that has nothing to keep. */
export const typeByHand = 'manual';

/** All that speaks against making the vault so. */
export function stateIssues(
  state: VaultState,
  wanted: WantedState,
  options: PlanOptions,
  now: number,
): StateIssue[] {
  return [
    ...issuerIssues(state, wanted),
    ...providerIssues(state, wanted),
    ...nameIssues(state, wanted),
    ...certificateIssues(state, wanted, options),
    ...constraintIssues(state, wanted, options),
    ...importIssues(state, wanted),
    ...deployTargetIssues(state, wanted, options),
    ...apiKeyIssues(state, wanted, options, now),
    ...acmeClientIssues(state, wanted, options, now),
    ...alikeIssues(state, wanted),
  ];
}

function issuerIssues(state: VaultState, { issuers }: WantedState): StateIssue[] {
  return [...issuers].flatMap(([name, issuer]) => {
    const issues: StateIssue[] = [];
    const complain = (field: string, message: string) =>
      issues.push({ path: ['issuers', name, field], message });
    const held = state.issuers.get(name);
    const isPrivate = 'privateCa' in issuer;
    if (held !== undefined && isPrivate !== (held.definition.type === 'local-ca')) {
      const is = isPrivate ? 'is an ACME CA' : 'is a private CA';
      complain('type', `issuer ${name} ${is}, which cannot be changed; choose another name`);
      return issues;
    }
    if (isPrivate) {
      for (const field of ['common_name', 'path_length'] as const) {
        const is = issuer.privateCa[field];
        const was =
          held?.definition[field] ?? (field === 'path_length' ? defaultSettings.pathLength : undefined);
        if (held !== undefined && is !== undefined && is !== was) {
          complain(field, `is set when a CA is created and cannot be changed; it is ${was ?? 'not set'}`);
        }
      }
      return issues;
    }
    const { input, secrets } = issuer;
    const hasKey = secrets.eabKey !== undefined || held?.secret?.() !== undefined;
    if (input.eab_kid !== undefined && !hasKey) {
      complain('eab_kid', 'the HMAC key is missing; add eab_hmac_key: {file: NAME}');
    }
    if (input.eab_kid === undefined && secrets.eabKey !== undefined) {
      complain('eab_hmac_key', 'the key id is missing; add eab_kid');
    }
    return issues;
  });
}

function providerIssues(state: VaultState, { dns_providers }: WantedState): StateIssue[] {
  return [...dns_providers]
    .filter(([name, { input, secret }]) => {
      const isKnown = state.dns_providers.get(name)?.definition.type === input.type;
      return secret === undefined && input.type !== typeByHand && !isKnown;
    })
    .map(([name]) => ({
      path: ['dns_providers', name, 'secret'],
      message: 'missing for a new provider or a new type; name the file with its settings: {file: NAME}',
    }));
}

/** Certificates from before keep names that no new one may have. */
function nameIssues(state: VaultState, wanted: WantedState): StateIssue[] {
  return (['certificates', 'imported_certificates'] as const).flatMap((section) =>
    [...wanted[section].keys()]
      .filter((name) => !state[section].has(name) && parseNewCertName(name) === undefined)
      .map((name) => ({ path: [section, name], message: `"${name}" is not a name: ${newCertNameRule}` })),
  );
}

/**
 * Names that read like others in their section: what is new is created before anything is removed, and would be
 * refused.
 */
function alikeIssues(state: VaultState, wanted: WantedState): StateIssue[] {
  return (['issuers', 'dns_providers', 'deploy_targets', 'acme_clients', 'api_keys'] as const).flatMap(
    (section) => {
      const taken = new Map([...state[section].keys()].map((name) => [comparableLabel(name), name]));
      const added = [...wanted[section].keys()].filter((name) => !state[section].has(name));
      return added.flatMap((name) => {
        const other = taken.get(comparableLabel(name));
        taken.set(comparableLabel(name), name);
        const message = `reads like ${JSON.stringify(other)}; use that name, or rename or remove that one first`;
        return other === undefined ? [] : [{ path: [section, name], message }];
      });
    },
  );
}

function certificateIssues(state: VaultState, wanted: WantedState, options: PlanOptions): StateIssue[] {
  const issuers = new Set([...wanted.issuers.keys(), localCaName]);
  if (options.others === 'stay') for (const name of state.issuers.keys()) issuers.add(name);
  const both = { state, wanted };
  return [...wanted.certificates].flatMap(([name, certificate]) => {
    const issues: StateIssue[] = [];
    const complain = (field: string, message: string) =>
      issues.push({ path: ['certificates', name, field], message });
    for (const field of ['issuer', 'fallback_issuer'] as const) {
      const issuer = certificate[field];
      if (issuer === undefined || issuers.has(issuer)) continue;
      const isKnown = state.issuers.has(issuer);
      complain(
        field,
        isKnown
          ? `issuer ${issuer} would be removed; add it to issuers`
          : `unknown issuer ${JSON.stringify(issuer)}${
              Object.hasOwn(knownDirectories, issuer) ? '; add it to issuers' : ''
            }`,
      );
    }
    if (certificate.fallback_issuer === certificate.issuer) {
      complain('fallback_issuer', `${certificate.issuer} cannot be its own fallback`);
    }
    try {
      const type = isPrivateCa(both, certificate.issuer) ? 'local-ca' : 'acme';
      const usual = defaultKeyTypeOf(both, certificate.issuer, certificate.profile);
      const complete = completeCertificate(certificate, usual);
      refuseUnsuitable({ name: certificate.issuer, type }, complete);
      const { issuer, profile } = certificate;
      const known = profilesOf(both, issuer);
      if (type === 'local-ca' && profile !== undefined && !known.includes(profile)) {
        throw unknownProfile(issuer, profile, known);
      }
      for (const one of [certificate.issuer, certificate.fallback_issuer]) {
        if (one !== undefined && isPrivateCa(both, one))
          refuseForbidden(one, permittedBy(both, one), complete);
      }
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      for (const { path, message } of error.errors) complain(path, message);
    }
    const fallback = certificate.fallback_issuer;
    if (fallback !== undefined && !isPrivateCa(both, fallback) && certificate.key_type === 'ed25519') {
      complain(
        'fallback_issuer',
        `${fallback} is an ACME CA, and ACME CAs do not issue certificates for Ed25519 keys`,
      );
    }
    return issues;
  });
}

/** Certificates that the document does not name and that a private CA could renew no more. */
function constraintIssues(state: VaultState, wanted: WantedState, { others }: PlanOptions): StateIssue[] {
  if (others === 'go') return [];
  const both = { state, wanted };
  const left = [...state.certificates].filter(([name]) => !wanted.certificates.has(name));
  return [...wanted.issuers.keys()].flatMap((issuer) => {
    if (!isPrivateCa(both, issuer) || !isConfined(permittedBy(both, issuer))) return [];
    const names = left.flatMap(([name, { definition }]) => {
      if (definition.disabled === true) return [];
      if (definition.issuer !== issuer && definition.fallback_issuer !== issuer) return [];
      const forbidden = forbiddenName(permittedBy(both, issuer), definition as CertifiedNames);
      return forbidden === undefined ? [] : `${name} (${forbidden.name})`;
    });
    if (names.length === 0) return [];
    const shown = names.slice(0, 5).join(', ') + (names.length > 5 ? ' …' : '');
    const message = `certificates that ${issuer} renews have other names: ${shown}`;
    return [{ path: ['issuers', issuer, 'permit_domains'], message }];
  });
}

function importIssues(state: VaultState, wanted: WantedState): StateIssue[] {
  return [...wanted.imported_certificates].flatMap(([name, { bundle }]) => {
    const path = ['imported_certificates', name];
    if (wanted.certificates.has(name)) {
      return [
        { path, message: 'also listed under certificates; a certificate is either imported or issued' },
      ];
    }
    if (state.certificates.has(name)) {
      const message = 'an issuer renews this certificate; delete it first, or import under another name';
      return [{ path, message }];
    }
    if (bundle === undefined && !state.imported_certificates.has(name)) {
      return [
        { path, message: 'files are missing for a new certificate; add fullchain_file and private_key_file' },
      ];
    }
    return [];
  });
}
