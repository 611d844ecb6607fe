/** Certificates of a vault at a server: what its endpoints return, as the commands use it. */
import { Problem } from '../../../base/problem.ts';
import { parseTimestamp } from '../../../base/timestamp.ts';
import type { ImportRequest, ImportResult } from '../../../domain/certificates/certificate-import.ts';
import type {
  CertificateView,
  RenewalDetailView,
  RenewalView,
} from '../../../domain/certificates/certificate-views.ts';
import type { DeletedCertificateView } from '../../../domain/certificates/deleted-certificate-views.ts';
import {
  deletedCertificateNotFound,
  type Restored,
} from '../../../domain/certificates/deleted-certificates.ts';
import type { RolloutView } from '../../../domain/deployments/rollout.ts';
import type { IssuerView } from '../../../domain/issuers/issuer-views.ts';
import type { Keystore } from '../../../domain/versions/formats.ts';
import { inPath, type RemoteVault } from '../../remote/remote-vault.ts';
import { labelQuery } from '../label-options.ts';
import { checkedIssuer, type ReadFilter } from './certificate-filter.ts';

/** What a change of a certificate returns. */
export type ChangedCertificate = { readonly certificate: CertificateView; readonly renewal: number | null };

export function certificatePath(name: string, more = ''): string {
  return `/certificates/${inPath(name)}${more}`;
}

/** Those that fit the filter, page by page. */
export async function* certificatesThere(
  remote: RemoteVault,
  { expiringWithin, issuer, status, search, labels }: ReadFilter,
  now: number,
): AsyncGenerator<readonly CertificateView[]> {
  const known = issuer === undefined ? [] : await remote.list<IssuerView>('/issuers');
  const its = checkedIssuer(
    issuer,
    known.map(({ name }) => name),
  );
  const query = {
    status,
    search,
    label: labelQuery(labels),
    ...(its !== undefined && { issuer: its ?? '' }),
  };
  for await (const page of remote.pages<CertificateView>('/certificates', query)) {
    if (expiringWithin === undefined) yield page;
    else yield page.filter(({ current_version: current }) => expiresBy(current, now + expiringWithin));
  }
}

function expiresBy(version: { readonly not_after: string } | null, time: number): boolean {
  return version !== null && (parseTimestamp(version.not_after) ?? 0) <= time;
}

/** The newest deleted certificate of this name. Throws `certificate_not_found`. */
export async function deletedThere(remote: RemoteVault, name: string): Promise<DeletedCertificateView> {
  const all = await remote.list<DeletedCertificateView>('/deleted-certificates');
  const found = all.findLast((one) => one.name === name);
  if (found === undefined) throw deletedCertificateNotFound(name);
  return found;
}

/** Restores the deleted certificate of this name, under it or `as`. */
export async function undeleteThere(
  remote: RemoteVault,
  name: string,
  as: string | undefined,
): Promise<Pick<Restored, 'lostIssuer' | 'apiKeys' | 'labels'> & { readonly name: string }> {
  const { id } = await deletedThere(remote, name);
  const made = await remote.send<{
    readonly certificate: CertificateView;
    readonly lost_issuer: string | null;
    readonly api_keys: Restored['apiKeys'];
    readonly labels: Restored['labels'];
  }>('POST', `/deleted-certificates/${id}/restore`, as === undefined ? {} : { name: as });
  return {
    name: made.certificate.name,
    lostIssuer: made.lost_issuer ?? undefined,
    apiKeys: made.api_keys,
    labels: made.labels,
  };
}

/** Queues a renewal, or returns the one that is already open. */
export function renewThere(
  remote: RemoteVault,
  name: string,
): Promise<Pick<RenewalView, 'id' | 'certificate' | 'status'>> {
  return suggestingThere(remote, name, remote.send('POST', certificatePath(name, '/renew')));
}

/** What is sent; if the certificate is unknown, the problem of an operation that suggests names to administrators. */
export async function suggestingThere<T>(
  remote: RemoteVault,
  name: string | undefined,
  sending: Promise<T>,
): Promise<T> {
  try {
    return await sending;
  } catch (error) {
    if (name === undefined || !(error instanceof Problem) || error.code !== 'certificate_not_found')
      throw error;
    await remote.get(certificatePath(name, '/settings'));
    throw error;
  }
}

/** How far the current version has come; undefined from a vault of a version without rollouts. */
export async function rolloutThere(remote: RemoteVault, name: string): Promise<RolloutView | undefined> {
  try {
    return await remote.get<RolloutView>(certificatePath(name, '/rollout'));
  } catch (error) {
    if (error instanceof Problem && error.code === 'not_found') return undefined;
    throw error;
  }
}

/** Sends the files, which the server reads. */
export function importThere(
  remote: RemoteVault,
  { name, labels, sources, password, allowCa, force, allowLostDomains }: ImportRequest,
): Promise<ImportResult> {
  return remote.send('POST', '/imports', {
    name,
    labels,
    force,
    allow_lost_domains: allowLostDomains,
    files: sources.map((source) => ({
      name: source.name,
      content_base64: Buffer.from(source.bytes).toString('base64'),
    })),
    allow_ca: allowCa,
    ...(password !== undefined && { password: password.expose() }),
  });
}

export function renewalThere(remote: RemoteVault, id: number): Promise<RenewalDetailView> {
  return remote.get<RenewalDetailView>(`/renewals/${id}`);
}

/** A file of a version, the current one without a number, which the server records as a download of the API key. */
export function downloadThere(
  remote: RemoteVault,
  name: string,
  file: string,
  version: number | undefined,
  keystore: Keystore | undefined,
): Promise<{ readonly content: Buffer; readonly version: number }> {
  const query = new URLSearchParams({
    ...(version !== undefined && { version: String(version) }),
    ...(keystore !== undefined && { encryption: keystore.encryption }),
  });
  // Percent-encoded (RFC 8187), because header values are not Unicode.
  const encoded = keystore && {
    'Keystore-Password': `UTF-8''${encodeURIComponent(keystore.password.expose())}`,
  };
  return remote.download(certificatePath(name, `/${file}?${query}`), encoded);
}
