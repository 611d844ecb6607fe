/** The settings of a certificate as administrators see and change them. */
import { formatLifetime } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import type { Usage } from '../../base/leaf-names.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { listRevokedVersions } from '../../db/tables/certificates/certificate-versions.ts';
import { findIssuerById } from '../../db/tables/issuance/issuers.ts';
import type { DatabaseContext } from '../contexts.ts';
import { labelsOf } from '../labels/certificate-labelling.ts';
import { leafInProfile } from '../private-ca/profile-rules.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';
import { keyPins } from '../versions/next-key.ts';

export type CertificateSettingsView = {
  name: string;
  domains: string[];
  key_type: string;
  issuer: string | null;
  fallback_issuer: string | null;
  /** In the format of the `lifetime` input, such as 90d. */
  lifetime: string | null;
  profile: string | null;
  challenge: string | null;
  reuse_key: boolean;
  /** PEM; null if the vault generates the keys. */
  csr: string | null;
  /** `server`, `client` or `both`. */
  usage: Usage;
  uris: readonly string[];
  emails: readonly string[];
  /** Fields such as `CN=alice`; empty if the subject is the first domain. */
  subject: readonly string[];
  /** Such as `team=web`, sorted. */
  labels: readonly string[];
  /** `sha256//…` of the current public key; null if nothing is issued yet. */
  public_key_pin: string | null;
  /** The pin after the next renewal, if a key rotation is scheduled. */
  next_public_key_pin: string | null;
  auto_renew: boolean;
  disabled: boolean;
  failed_attempts: number;
  /** Retry-After of the CA, as a time. */
  retry_after: string | null;
  /** The CA's renewal window (RFC 9773) for the current version. */
  renewal_window: { start: string; end: string } | null;
  /** The numbers of revoked versions, newest first. */
  revoked_versions: readonly number[];
};

/** Revoked versions that are listed. */
const maxRevoked = 1000;

/** Throws `certificate_not_found`. */
export async function certificateSettings(
  { db }: DatabaseContext,
  name: string,
): Promise<CertificateSettingsView> {
  const row = await requireCertificate(db.reader, name, { suggest: true });
  const nameOf = async (id: number | null) =>
    id === null ? null : ((await findIssuerById(db.reader, id))?.name ?? null);
  const leaf = await leafInProfile(db.reader, row);
  const pins = await keyPins(db.reader, row);
  const { ari_window_start: start, ari_window_end: end, retry_after } = row;
  return {
    name: row.name,
    domains: parseJson(row.domains),
    key_type: row.key_type,
    issuer: await nameOf(row.issuer_id),
    fallback_issuer: await nameOf(row.fallback_issuer_id),
    lifetime: row.lifetime === null ? null : formatLifetime(row.lifetime),
    profile: row.profile,
    challenge: row.challenge,
    reuse_key: row.reuse_key === 1,
    csr: row.csr,
    usage: leaf.usage ?? 'both',
    uris: leaf.uris ?? [],
    emails: leaf.emails ?? [],
    subject: leaf.subject ?? [],
    labels: labelsOf(row),
    public_key_pin: pins.current,
    next_public_key_pin: pins.next,
    auto_renew: row.auto_renew === 1,
    disabled: row.disabled_at !== null,
    failed_attempts: row.failed_attempts,
    retry_after: formatTimestampOrNull(retry_after),
    renewal_window:
      start === null || end === null ? null : { start: formatTimestamp(start), end: formatTimestamp(end) },
    revoked_versions: await listRevokedVersions(db.reader, row.id, maxRevoked),
  };
}
