/** What a certificate shall be, as administrators see and change it, beside what it is. */
import { day, hour, minute } from '../../base/duration.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import { findIssuerById } from '../../db/tables/issuers.ts';
import type { DatabaseContext } from '../contexts.ts';
import { requireCertificate } from '../versions/certificate-lookup.ts';

export type CertificateSettingsView = {
  name: string;
  domains: string[];
  key_type: string;
  issuer: string | null;
  fallback_issuer: string | null;
  /** As `lifetime` is written when a certificate is made. */
  lifetime: string | null;
  profile: string | null;
  challenge: string | null;
  reuse_key: boolean;
  auto_renew: boolean;
  disabled: boolean;
  failed_attempts: number;
  /** The CA asked not to be asked again before this. */
  retry_after: string | null;
  /** The CA's renewal window (RFC 9773) for the current version. */
  renewal_window: { start: string; end: string } | null;
};

/** Throws `certificate_not_found`. */
export async function certificateSettings(
  { db }: DatabaseContext,
  name: string,
): Promise<CertificateSettingsView> {
  const row = await requireCertificate(db.reader, name);
  const nameOf = async (id: number | null) =>
    id === null ? null : ((await findIssuerById(db.reader, id))?.name ?? null);
  const { ari_window_start: start, ari_window_end: end, retry_after } = row;
  return {
    name: row.name,
    domains: JSON.parse(row.domains) as string[],
    key_type: row.key_type,
    issuer: await nameOf(row.issuer_id),
    fallback_issuer: await nameOf(row.fallback_issuer_id),
    lifetime: row.lifetime === null ? null : formatLifetime(row.lifetime),
    profile: row.profile,
    challenge: row.challenge,
    reuse_key: row.reuse_key === 1,
    auto_renew: row.auto_renew === 1,
    disabled: row.disabled_at !== null,
    failed_attempts: row.failed_attempts,
    retry_after: formatTimestampOrNull(retry_after),
    renewal_window:
      start === null || end === null ? null : { start: formatTimestamp(start), end: formatTimestamp(end) },
  };
}

/** A lifetime as inputs write it: the same number of milliseconds again when it is parsed. */
export function formatLifetime(ms: number): string {
  if (ms % day === 0) return `${ms / day}d`;
  return ms % hour === 0 ? `${ms / hour}h` : `${ms / minute}m`;
}
