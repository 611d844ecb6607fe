/** Translates database rows into the facts of the renewal policy. */

import type { CertificateVersionsTable } from '../../db/schema/schema.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import { type CurrentFacts, type RenewalFacts, renewAt } from './renewal-policy.ts';

/** The columns of the current version that the policy needs. */
export type PlannedVersion = Pick<
  CertificateVersionsTable,
  'not_before' | 'not_after' | 'serial' | 'created_at' | 'source'
>;

export type PlannedCertificate = Pick<
  CertificateRow,
  | 'issuer_id'
  | 'auto_renew'
  | 'disabled_at'
  | 'changed_at'
  | 'failed_attempts'
  | 'last_attempt_at'
  | 'retry_after'
  | 'ari_renew_at'
> &
  Partial<Pick<CertificateRow, 'fallback_issuer_id' | 'fallback_retry_after'>>;

/** The columns of a certificate that is never renewed, such as an imported one. */
export const neverRenewed = { issuer_id: null, auto_renew: 0, disabled_at: null, changed_at: null } as const;

/** When to renew next (UTC milliseconds), or null if the certificate does not renew automatically. */
export function nextRenewalAt(
  certificate: PlannedCertificate,
  current: PlannedVersion | undefined | null,
  now: number,
): number | null {
  const { issuer_id, auto_renew, disabled_at } = certificate;
  if (issuer_id === null || auto_renew === 0 || disabled_at !== null) return null;
  return renewAt(renewalFacts(certificate, current, now));
}

export function renewalFacts(
  certificate: PlannedCertificate,
  current: PlannedVersion | undefined | null,
  now: number,
): RenewalFacts {
  return {
    now,
    current: currentFacts(current),
    changed: certificate.changed_at !== null,
    ariMoment: certificate.ari_renew_at,
    failedAttempts: certificate.failed_attempts,
    lastAttemptAt: certificate.last_attempt_at,
    retryAfter: certificate.retry_after,
    fallback:
      certificate.fallback_issuer_id == null
        ? undefined
        : { retryAfter: certificate.fallback_retry_after ?? null },
  };
}

function currentFacts(version: PlannedVersion | undefined | null): CurrentFacts | null {
  if (version == null) return null;
  return {
    notBefore: version.not_before,
    notAfter: version.not_after,
    madeAt: version.created_at,
    seed: version.serial,
    isOwn: version.source === 'local-ca',
  };
}
