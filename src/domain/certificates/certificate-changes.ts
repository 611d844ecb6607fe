/** What a change of a certificate does to its row. */

import { parseJson, toJson } from '../../base/json.ts';
import { isSameRequest, readSigningRequest } from '../../crypto/x509/signing-request.ts';
import type { CertificateRow } from '../../db/tables/certificates/certificates.ts';
import type { IssuerRow } from '../../db/tables/issuance/issuers.ts';
import type { UpdateCertificateInput } from '../inputs.ts';
import { hasOtherLeaf, leafColumns, leafSettings } from '../private-ca/leaf-settings.ts';
import { ownKeyType } from './client-keys.ts';

/** The columns that the change sets. */
export function changesFor(
  before: CertificateRow,
  input: UpdateCertificateInput,
  issuer: IssuerRow,
  fallbackId: number | null | undefined,
  now: number,
): Partial<CertificateRow> {
  const domains = input.domains && toJson(input.domains);
  const leaf = leafColumns(input);
  const hasOtherDomains = domains !== undefined && !sameNames(domains, before.domains);
  const hasOtherNames = hasOtherDomains || hasOtherLeaf(before, leaf);
  const hasOtherRequest = input.csr !== undefined && !isSameRequest(input.csr, before.csr);
  const keyType = keyTypeAfter(before, input);
  const hasOtherKey = keyType !== before.key_type || hasOtherRequest;
  const hasOtherIssuer = issuer.id !== before.issuer_id;
  const wasImported = before.issuer_id === null;
  return {
    ...(hasOtherDomains && { domains }),
    ...leaf,
    ...(hasOtherKey && { key_type: keyType }),
    ...(input.csr !== undefined && { csr: input.csr }),
    ...(typeof input.csr === 'string' && { reuse_key: 0 as const }),
    ...((hasOtherNames || hasOtherKey || wasImported) && { changed_at: now }),
    // Earlier failures say nothing about the changed certificate.
    ...((hasOtherNames || hasOtherKey || hasOtherIssuer) && {
      failed_attempts: 0,
      retry_after: null,
      fallback_retry_after: null,
    }),
    ...(hasOtherIssuer && { issuer_id: issuer.id }),
    // An ACME CA chooses the lifetime itself.
    ...(hasOtherIssuer && issuer.type === 'acme' && { lifetime: null }),
    ...(input.lifetime !== undefined && { lifetime: input.lifetime }),
    ...(wasImported && { auto_renew: 1 as const }),
    ...(fallbackId !== undefined && { fallback_issuer_id: fallbackId }),
    ...(fallbackId !== undefined &&
      fallbackId !== before.fallback_issuer_id && { fallback_retry_after: null }),
    ...(input.profile !== undefined && { profile: input.profile }),
    ...(input.challenge !== undefined && { challenge: input.challenge }),
    ...(input.reuse_key !== undefined && { reuse_key: input.reuse_key ? (1 as const) : (0 as const) }),
    ...(input.auto_renew !== undefined && { auto_renew: input.auto_renew ? (1 as const) : (0 as const) }),
    ...(input.disabled !== undefined && { disabled_at: input.disabled ? (before.disabled_at ?? now) : null }),
  };
}

/** With a CSR, the type of its key. */
function keyTypeAfter(before: CertificateRow, { csr, key_type: wanted }: UpdateCertificateInput): string {
  if (typeof csr === 'string') return readSigningRequest(csr).keyType;
  return csr === null && before.csr !== null
    ? ownKeyType(before.key_type, wanted)
    : (wanted ?? before.key_type);
}

function sameNames(one: CertificateRow['domains'], other: CertificateRow['domains']): boolean {
  const sorted = (text: CertificateRow['domains']) => JSON.stringify(parseJson(text).sort());
  return sorted(one) === sorted(other);
}

/** The settings of a row as an input has them. */
export function issuanceSettings(row: CertificateRow) {
  const { domains, key_type, profile, challenge, lifetime } = row;
  return {
    ...(leafSettings(row) as object),
    domains: parseJson(domains),
    key_type: key_type as never,
    profile: profile ?? undefined,
    challenge: (challenge ?? undefined) as never,
    lifetime: lifetime ?? undefined,
  };
}
