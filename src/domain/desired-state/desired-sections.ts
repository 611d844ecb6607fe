/**
 * The outline of the document of `vault apply`, without what checks it: also for those who only have to know it by
 * sight.
 */

export const documentVersion = 1;

export const sections = [
  'issuers',
  'dns_providers',
  'certificates',
  'imported_certificates',
  'deploy_targets',
  'api_keys',
  'acme_clients',
] as const;

export type Section = (typeof sections)[number];

/** What the document need not say. */
export const usual: Readonly<Record<string, boolean>> = {
  reuse_key: false,
  auto_renew: true,
  disabled: false,
  accept_terms: false,
};
