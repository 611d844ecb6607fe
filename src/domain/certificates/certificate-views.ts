/** Certificates, versions and renewals as the API and the commands show them (design, "HTTP"). */
import { parseJson, parseJsonOr } from '../../base/json.ts';
import { escapedJson } from '../../base/printable-text.ts';
import { Problem } from '../../base/problem.ts';
import type { Scope } from '../../base/scope.ts';
import { formatTimestamp, formatTimestampOrNull } from '../../base/timestamp.ts';
import type { RenewalStatus } from '../../db/schema/schema-renewals.ts';
import type { ShownCertificateRow } from '../../db/tables/certificates/certificate-summaries.ts';
import type { ShownVersionRow } from '../../db/tables/certificates/certificate-versions.ts';
import type { NamedRenewalRow } from '../../db/tables/renewals/renewals.ts';
import type { TimedContext } from '../contexts.ts';
import { stepsOf } from '../renewals/attempt.ts';
import type { Renewal } from '../renewals/renewals.ts';
import { artifacts, etagOf, listedArtifacts } from '../versions/artifacts.ts';
import { certificateSummary } from '../versions/certificate-lookup.ts';
import { holdsKey } from '../versions/versions.ts';
import { type CertificateStatus, certificateStatus } from './certificate-status.ts';

/** Who holds a private key: the vault, or the client that sent a CSR. */
export type KeyHolder = 'vault' | 'client';

export type VersionView = {
  version: number;
  serial: string;
  issuer: string;
  subject: string;
  domains: string[];
  key_type: string;
  fingerprint_sha256: string;
  not_before: string;
  not_after: string;
  created_at: string;
  source: 'acme' | 'local-ca' | 'import';
  /** Who holds the private key. */
  key_holder: KeyHolder;
  current: boolean;
};

export type OwnerView = { type: 'acme-client'; id: number; name: string };

export type ArtifactView = { file: string; scope: Scope; url: string; etag: string };

export type CertificateView = {
  name: string;
  domains: string[];
  /** Like the domains, those of the next version. */
  uris: string[];
  emails: string[];
  /** Such as `team=web`, sorted. */
  labels: string[];
  key_type: string;
  /** The name of the issuer that renews it; null for imported certificates. */
  issuer: string | null;
  /** The ACME client that orders and renews it; null for the vault's own certificates. */
  owner: OwnerView | null;
  status: CertificateStatus;
  auto_renew: boolean;
  /** Who holds the private keys of the next versions; the current one says it for itself. */
  key_holder: KeyHolder;
  created_at: string;
  current_version: VersionView | null;
  renewal: { next_at: string | null; last_error: string | null; last_attempt_at: string | null };
  artifacts: ArtifactView[];
};

export type RenewalView = {
  id: number;
  certificate: string;
  status: RenewalStatus;
  requested_at: string;
  started_at: string | null;
  finished_at: string | null;
  version: number | null;
  error: string | null;
};

/** A renewal as administrators see it. */
export type RenewalDetailView = RenewalView & {
  /** The issuer of this renewal; null if it was deleted or not chosen yet. */
  issuer: string | null;
  /** An actor in the format of the audit log. */
  requested_by: string;
  steps: { at: string; text: string }[];
  /** Until when a queued renewal is held; null if it is not. */
  held_until: string | null;
  /** Why; null for a rate limit of the CA. */
  hold_reason: string | null;
};

/** `base` precedes `/api/v1` in the URLs of the artifacts; empty for relative URLs. */
export function certificateView(row: ShownCertificateRow, now: number, base: string): CertificateView {
  return viewAs(row, statusAt(row, now), base);
}

/**
 * A certificate as it is right now, for answers to changes: what requests remember may be a moment older. Throws
 * `certificate_not_found`.
 */
export async function currentCertificate(
  context: TimedContext,
  name: string,
  base: string,
): Promise<CertificateView> {
  const summary = await certificateSummary(context, name);
  if (summary === undefined) throw new Problem('certificate_not_found');
  return certificateView(summary, context.world.now(), base);
}

/** The last JSON text of each cached row. */
const shown = new WeakMap<ShownCertificateRow, { status: CertificateStatus; base: string; text: string }>();

/** `certificateView` as JSON, cached per row because clients poll unchanged certificates. */
export function certificateText(row: ShownCertificateRow, now: number, base: string): string {
  const status = statusAt(row, now);
  const last = shown.get(row);
  if (last?.status === status && last.base === base) return last.text;
  const text = escapedJson(JSON.stringify(viewAs(row, status, base)));
  shown.set(row, { status, base, text });
  return text;
}

function statusAt({ current, disabled_at }: ShownCertificateRow, now: number): CertificateStatus {
  return certificateStatus(current, now, disabled_at !== null);
}

/** Takes the status instead of the time, because nothing else in the view depends on time. */
function viewAs(row: ShownCertificateRow, status: CertificateStatus, base: string): CertificateView {
  const { current } = row;
  const domains = parseJson(row.domains);
  return {
    name: row.name,
    domains,
    uris: parseJsonOr(row.uris, []),
    emails: parseJsonOr(row.emails, []),
    labels: parseJsonOr(row.labels, []),
    key_type: row.key_type,
    issuer: row.issuer_name,
    owner: ownerOf(row),
    status,
    auto_renew: row.auto_renew === 1,
    key_holder: row.csr === null ? 'vault' : 'client',
    created_at: formatTimestamp(row.created_at),
    current_version:
      current && viewOf(current, row.current_version, current.domains === row.domains ? domains : undefined),
    renewal: {
      next_at: formatTimestampOrNull(row.next_renewal_at),
      last_error: row.last_error,
      last_attempt_at: formatTimestampOrNull(row.last_attempt_at),
    },
    artifacts: current === null ? [] : artifactViews(row.name, current, base),
  };
}

function ownerOf({ acme_client_id: id, owner_name: name }: ShownCertificateRow): OwnerView | null {
  return id === null || name === null ? null : { type: 'acme-client', id, name };
}

export function versionView(row: ShownVersionRow, currentVersion: number | null): VersionView {
  return viewOf(row, currentVersion);
}

/** `domains` are those of the version, if already parsed. */
function viewOf(
  row: ShownVersionRow,
  currentVersion: number | null,
  domains: string[] = parseJson(row.domains),
): VersionView {
  return {
    version: row.version,
    serial: row.serial,
    issuer: row.issuer,
    subject: row.subject,
    domains,
    key_type: row.key_type,
    fingerprint_sha256: row.fingerprint_sha256,
    not_before: formatTimestamp(row.not_before),
    not_after: formatTimestamp(row.not_after),
    created_at: formatTimestamp(row.created_at),
    source: row.source,
    key_holder: holdsKey(row) ? 'vault' : 'client',
    current: row.version === currentVersion,
  };
}

/** A renewal as clients see it. */
export function renewalView(row: Renewal): RenewalView {
  return {
    id: row.id,
    certificate: row.certificate,
    status: row.status,
    requested_at: formatTimestamp(row.requested_at),
    started_at: formatTimestampOrNull(row.started_at),
    finished_at: formatTimestampOrNull(row.finished_at),
    version: row.version,
    error: row.error,
  };
}

/** A renewal with its steps and who requested it. */
export function renewalDetailView(row: NamedRenewalRow): RenewalDetailView {
  return {
    ...renewalView(row),
    issuer: row.issuer,
    requested_by: row.requested_by,
    steps: stepsOf(row).map(({ at, text }) => ({ at: formatTimestamp(at), text })),
    held_until: formatTimestampOrNull(row.held_until),
    hold_reason: row.hold_reason,
  };
}

function artifactViews(name: string, current: ShownVersionRow, base: string): ArtifactView[] {
  const folder = `${base}/api/v1/certificates/${encodeURIComponent(name)}/`;
  const files = listedArtifacts.filter((file) => file !== 'private.key' || holdsKey(current));
  return files.map((file) => ({
    file,
    scope: artifacts[file].scope,
    url: folder + file,
    etag: etagOf(current, artifacts[file].content),
  }));
}
