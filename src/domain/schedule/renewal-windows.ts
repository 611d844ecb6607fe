/**
 * Queries renewal windows of CAs (ARI, RFC 9773) and chooses one random time per window, which stays while the window
 * does.
 */
import { X509Certificate } from 'node:crypto';
import { AcmeError } from '../../acme/acme-error.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../acme/renewal-info.ts';
import { withDeadline } from '../../base/deadline.ts';
import { hour, minute, second } from '../../base/duration.ts';
import {
  type CertificateVersionRow,
  findVersion,
} from '../../db/tables/certificates/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificateById,
  listAriDue,
  postponeAri,
  updateCertificate,
} from '../../db/tables/certificates/certificates.ts';
import { findCaOfDirectory } from '../../db/tables/issuance/issuers.ts';
import type { LoggedContext, TimedContext } from '../contexts.ts';
import type { CaContext } from '../issuance-contexts.ts';
import { nextRenewalAt } from './renewal-plan.ts';

/** Delay after a failed query. */
const afterFailure = hour;
/** Delay for a CA without renewal windows, in case it introduces them. */
const afterNone = 24 * hour;

/** Concurrent queries per CA. */
const atOnce = 4;

/**
 * An answer that takes longer is as good as none: with a hundred of them, all other CAs would wait for half an hour.
 */
const slow = 15 * second;

/** Certificates postponed per transaction, so that other writes can run in between. */
const postponedAtOnce = 500;

/** A certificate whose current version was issued by an ACME CA. */
type Queried = { readonly certificate: CertificateRow; readonly version: CertificateVersionRow };

/**
 * Queries the windows that are due, at most `limit`, a few at a time per CA. A CA that fails, or is slow, is not
 * queried for its other certificates for an hour. Returns how many were due.
 */
export async function queryDueWindows(
  vault: LoggedContext & CaContext,
  limit: number,
  signal: AbortSignal,
): Promise<number> {
  const due = await listAriDue(vault.db.reader, vault.world.now(), limit);
  const byDirectory = new Map<string, Queried[]>();
  for (const certificate of due) {
    const number = certificate.current_version;
    const version = number === null ? undefined : await findVersion(vault.db.reader, certificate.id, number);
    const directory = version?.directory_url ?? null;
    if (version === undefined || directory === null) await scheduleQuery(vault, certificate, null);
    // Expired certificates have no window (RFC 9773 §4.3). Check again tomorrow in case the clock is wrong now.
    else if (version.not_after <= vault.world.now()) await scheduleQuery(vault, certificate, afterNone);
    else byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), { certificate, version }]);
  }
  await Promise.all(
    [...byDirectory].map(([directory, queried]) => queryCa(vault, directory, queried, signal)),
  );
  return due.length;
}

/** How long a program waits for the window of its certificate at most. */
const patience = 20 * second;

/**
 * Queries the window of a certificate that the vault does not renew itself, if it is due: a program asks when to renew
 * it. At most once an hour, however often it is asked for; a CA that does not respond in time leaves the window as it
 * is.
 */
export async function refreshWindow(
  vault: LoggedContext & CaContext,
  { certificate, version }: Queried,
  signal: AbortSignal,
): Promise<void> {
  const { ari_check_at: due, current_version: current } = certificate;
  const now = vault.world.now();
  if (version.directory_url === null || version.version !== current || due === null || due > now) return;
  if (version.not_after <= now) return;
  await scheduleQuery(vault, certificate, afterFailure);
  await withDeadline(vault.world, patience, signal, (deadline) =>
    queryWindow(vault, { certificate, version }, deadline.signal),
  );
}

async function queryCa(
  vault: LoggedContext & CaContext,
  directory: string,
  queried: readonly Queried[],
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...queried];
  const queryNext = async () => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (await queryWindow(vault, next, signal)) continue;
      waiting.length = 0;
      await postpone(vault, directory);
      return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, queryNext));
}

/** Postpones all due queries to this CA by an hour. */
async function postpone({ db, world }: TimedContext, directory: string): Promise<void> {
  const now = world.now();
  while (
    (await db.write((writer) => postponeAri(writer, directory, now, now + afterFailure, postponedAtOnce))) > 0
  ) {
    await world.turn();
  }
}

async function scheduleQuery(
  { db, world }: TimedContext,
  { id }: CertificateRow,
  after: number | null,
): Promise<void> {
  const ari_check_at = after === null ? null : world.now() + after;
  await db.write((writer) => updateCertificate(writer, id, { ari_check_at }));
}

/**
 * Returns whether to query this CA for other certificates; false after a failure that affects all, and for a slow CA.
 */
async function queryWindow(
  vault: LoggedContext & CaContext,
  { certificate, version }: Queried,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, world, log } = vault;
  const id = renewalInfoId(new X509Certificate(version.certificate_pem).raw);
  const ca = await findCaOfDirectory(db.reader, version.directory_url ?? '');
  if (id === undefined || ca === undefined) {
    await scheduleQuery(vault, certificate, afterNone);
    return true;
  }
  const begun = world.elapsed();
  try {
    const info = await withDeadline(world, minute, signal, (deadline) =>
      fetchRenewalInfo(vault.acme.at(ca), id, deadline.signal),
    );
    if (info === undefined) await scheduleQuery(vault, certificate, afterNone);
    else await store(vault, certificate, info);
    return world.elapsed() - begun < slow;
  } catch (error) {
    if (signal.aborted) return true;
    log.warn(
      { err: error, certificate: certificate.name },
      'failed to get the renewal window; retrying in an hour',
    );
    await scheduleQuery(vault, certificate, afterFailure);
    return !concernsAll(error);
  }
}

/** Whether the CA was unreachable or overloaded; any other error concerns one certificate alone. */
function concernsAll(error: unknown): boolean {
  if (!(error instanceof AcmeError)) return false;
  return error.status === undefined || error.status === 429 || error.status >= 500;
}

async function store(
  { db, world }: TimedContext,
  queried: CertificateRow,
  { windowStart, windowEnd, retryAfterMs }: { windowStart: number; windowEnd: number; retryAfterMs: number },
): Promise<void> {
  const random = world.randomBytes(4).readUInt32BE() / 2 ** 32;
  await db.write(async (writer) => {
    const certificate = await findCertificateById(writer, queried.id);
    if (certificate === undefined || certificate.current_version !== queried.current_version) return;
    const now = world.now();
    const version = await findVersion(writer, certificate.id, certificate.current_version ?? 0);
    if (version === undefined) return;
    const isSame =
      certificate.ari_window_start === windowStart &&
      certificate.ari_window_end === windowEnd &&
      certificate.ari_renew_at !== null;
    const isFirst = certificate.ari_window_start === null;
    const chosen = Math.floor(windowStart + random * (windowEnd - windowStart));
    // A window in the past for a new version would renew it again and again.
    const createdAt = Math.min(version.created_at, now);
    const earliest = isFirst ? createdAt + (version.not_after - version.not_before) / 20 : 0;
    const changes = {
      ari_check_at: now + retryAfterMs,
      ...(!isSame && {
        ari_window_start: windowStart,
        ari_window_end: windowEnd,
        ari_renew_at: Math.floor(Math.max(chosen, earliest)),
      }),
    };
    const next = nextRenewalAt({ ...certificate, ...changes }, version, now);
    await updateCertificate(writer, certificate.id, { ...changes, next_renewal_at: next });
  });
}
