/** The renewal windows of CAs (RFC 9773): asked for, and one moment chosen in each, which stays as long as the window does. */
import { X509Certificate } from 'node:crypto';
import { fetchRenewalInfo, renewalInfoId } from '../acme/renewal-info.ts';
import { withDeadline } from '../base/deadline.ts';
import { hour, minute } from '../base/duration.ts';
import { findVersion } from '../db/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificateById,
  listAriDue,
  updateCertificate,
} from '../db/certificates.ts';
import { findCaOfDirectory } from '../db/issuers.ts';
import { nextRenewalAt } from './renewal-plan.ts';
import type { Vault } from './vault.ts';

/** A CA that cannot say is asked again after this. */
const afterFailure = hour;
/** One that has no windows is asked again in case it gets them. */
const afterNone = 24 * hour;

/** Asks about the windows that are due, at most `limit`, a few at a time. Returns how many were. */
export async function askDueWindows(vault: Vault, limit: number, signal: AbortSignal): Promise<number> {
  const due = await listAriDue(vault.db.reader, vault.world.now(), limit);
  const waiting = [...due];
  const askOn = async () => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      await askWindow(vault, next, signal);
    }
  };
  await Promise.all(Array.from({ length: 4 }, askOn));
  return due.length;
}

async function askWindow(vault: Vault, certificate: CertificateRow, signal: AbortSignal): Promise<void> {
  const { db, world, log } = vault;
  const asked = certificate.current_version;
  const version = asked === null ? undefined : await findVersion(db.reader, certificate.id, asked);
  const again = (ms: number) =>
    db.write((writer) => updateCertificate(writer, certificate.id, { ari_check_at: world.now() + ms }));
  if (version === undefined || version.directory_url === null) {
    await db.write((writer) => updateCertificate(writer, certificate.id, { ari_check_at: null }));
    return;
  }
  const id = renewalInfoId(new X509Certificate(version.certificate_pem).raw);
  const ca = await findCaOfDirectory(db.reader, version.directory_url);
  if (id === undefined || ca === undefined) {
    await again(afterNone);
    return;
  }
  try {
    const info = await withDeadline(world, minute, signal, (deadline) =>
      fetchRenewalInfo(vault.acme.at(ca), id, deadline.signal),
    );
    if (info === undefined) await again(afterNone);
    else await store(vault, certificate, info);
  } catch (error) {
    if (signal.aborted) return;
    log.warn({ err: error, certificate: certificate.name }, 'the CA did not say when to renew; asking again');
    await again(afterFailure);
  }
}

async function store(
  { db, world }: Vault,
  asked: CertificateRow,
  { windowStart, windowEnd, retryAfterMs }: { windowStart: number; windowEnd: number; retryAfterMs: number },
): Promise<void> {
  const random = world.randomBytes(4).readUInt32BE() / 2 ** 32;
  await db.write(async (writer) => {
    const certificate = await findCertificateById(writer, asked.id);
    if (certificate === undefined || certificate.current_version !== asked.current_version) return;
    const now = world.now();
    const version = await findVersion(writer, certificate.id, certificate.current_version ?? 0);
    if (version === undefined) return;
    const isSame = certificate.ari_window_start === windowStart && certificate.ari_window_end === windowEnd;
    const isFirst = certificate.ari_window_start === null;
    const chosen = Math.floor(windowStart + random * (windowEnd - windowStart));
    // A version that is to be replaced as soon as it is there would be replaced for ever.
    const madeAt = Math.min(version.created_at, now);
    const earliest = isFirst ? madeAt + (version.not_after - version.not_before) / 20 : 0;
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
