/** The settings that the document wants an object to have, as the plan compares them with those that it has. */
import { formatLifetime } from '../../base/duration.ts';
import { formatTimestamp } from '../../base/timestamp.ts';
import { completeCertificate } from '../certificates/client-keys.ts';
import { wantedAcmeClient } from './acme-client-definition.ts';
import { type Definition, wantedPrivateCa } from './definition.ts';
import { wantedDeployTarget } from './deploy-target-definition.ts';
import type { Section } from './desired-sections.ts';
import { defaultKeyTypeOf } from './issuer-settings.ts';
import type { Held, VaultState } from './vault-state.ts';
import type { WantedState } from './wanted-state.ts';

/** The settings of the object `name`. Those that the document leaves to the vault are those of `held`. */
export function wantedDefinition(
  { state, wanted }: { readonly state: VaultState; readonly wanted: WantedState },
  section: Section,
  name: string,
  held: Held | undefined,
): Definition {
  const issuer = section === 'issuers' ? wanted.issuers.get(name) : undefined;
  if (issuer !== undefined && 'privateCa' in issuer)
    return wantedPrivateCa(issuer.privateCa, held?.definition);
  if (issuer !== undefined) {
    const { name: _, ...input } = issuer.input;
    // Terms that were accepted stay so.
    const accepts = issuer.secrets.acceptsTerms || held?.definition.accept_terms === true;
    return { ...input, ca_pem: issuer.secrets.ca ?? undefined, accept_terms: accepts };
  }
  const provider = section === 'dns_providers' ? wanted.dns_providers.get(name) : undefined;
  if (provider !== undefined) return { type: provider.input.type, zones: provider.input.zones };
  const certificate = section === 'certificates' ? wanted.certificates.get(name) : undefined;
  if (certificate !== undefined) {
    // A client may have sent its CSR in the meantime: without one in the document, it stays.
    const csr = certificate.csr ?? held?.definition.csr;
    const usual = defaultKeyTypeOf({ state, wanted }, certificate.issuer, certificate.profile);
    const complete = completeCertificate(certificate, usual);
    const { name: _, request: __, csr: ___, key_type, reuse_key, ...settings } = complete;
    const { issuer: from, lifetime, domains, usage, labels = [], ...rest } = settings;
    const key = csr === undefined ? { key_type, reuse_key } : { csr };
    const named = domains.length === 0 ? {} : { domains };
    const restricted = usage === 'both' ? {} : { usage };
    return {
      ...named,
      issuer: from,
      ...key,
      ...rest,
      ...restricted,
      labels: unlessEmpty(labels),
      lifetime: lifetime === undefined ? undefined : formatLifetime(lifetime),
    };
  }
  const imported = section === 'imported_certificates' ? wanted.imported_certificates.get(name) : undefined;
  if (imported !== undefined) return { labels: unlessEmpty(imported.labels) };
  const target = section === 'deploy_targets' ? wanted.deploy_targets.get(name) : undefined;
  if (target !== undefined) return wantedDeployTarget(target);
  const client = section === 'acme_clients' ? wanted.acme_clients.get(name) : undefined;
  if (client !== undefined) return wantedAcmeClient({ state, wanted }, client);
  const key = section === 'api_keys' ? wanted.api_keys.get(name) : undefined;
  if (key === undefined) return {};
  return {
    scopes: key.scopes,
    certificates: key.certificates === 'any' ? ['*'] : key.certificates,
    allowed_networks: unlessEmpty(key.allowed_networks),
    profiles: unlessEmpty(key.profiles),
    role: key.role ?? undefined,
    certificate_labels: unlessEmpty(key.certificate_labels),
    reach: unlessEmpty(key.reach),
    labels: unlessEmpty(key.labels),
    client_certificate: key.client_certificate ?? undefined,
    expires_at: key.expires_at === undefined ? undefined : formatTimestamp(key.expires_at),
  };
}

function unlessEmpty(list: readonly string[]): readonly string[] | undefined {
  return list.length === 0 ? undefined : list;
}
