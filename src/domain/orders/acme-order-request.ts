/** What the order for a certificate requests from an ACME CA. */
import { X509Certificate } from 'node:crypto';
import type { AcmeIdentifier, NewOrder } from '../../acme/acme-types.ts';
import { renewalInfoId } from '../../acme/renewal-info.ts';
import { type Identifier, isAddress } from '../../base/identifier.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import type { AcmeIssuerRow } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext } from '../contexts.ts';
import type { OrderProgress } from './order-progress.ts';

/** The request of a new order at this CA (RFC 8555 §7.4): names, profile, and the certificate that it replaces. */
export async function orderRequest(
  vault: DatabaseContext,
  attempt: OrderProgress,
  ca: AcmeIssuerRow,
  identifiers: readonly Identifier[],
): Promise<NewOrder> {
  return {
    identifiers: identifiers.map(acmeIdentifier),
    profile: orderProfile(attempt, ca),
    replaces: await replacedId(vault, attempt, ca),
  };
}

/** The certificate's profile applies only to its issuer; a fallback may not support it. */
function orderProfile({ certificate, renewal }: OrderProgress, ca: AcmeIssuerRow): string | undefined {
  const own = renewal.issuer_id === certificate.issuer_id ? certificate.profile : null;
  return own ?? ca.profile ?? undefined;
}

/** The ARI certificate id of the current version (RFC 9773 §4.1), if this CA issued it. */
async function replacedId(
  { db }: DatabaseContext,
  { certificate }: OrderProgress,
  ca: AcmeIssuerRow,
): Promise<string | undefined> {
  if (certificate.current_version === null) return undefined;
  const version = await findVersion(db.reader, certificate.id, certificate.current_version);
  if (version === undefined || version.directory_url !== ca.directory_url) return undefined;
  return renewalInfoId(new X509Certificate(version.certificate_pem).raw);
}

/** A name or address as ACME writes it. */
export function acmeIdentifier(value: Identifier): AcmeIdentifier {
  return { type: isAddress(value) ? 'ip' : 'dns', value };
}
