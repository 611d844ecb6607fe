/** The renewal windows of CAs (RFC 9773): asked for, and one moment chosen in each, which stays as long as the window does. */
import { X509Certificate } from 'node:crypto';
import { AcmeError } from '../../acme/acme-error.ts';
import { fetchRenewalInfo, renewalInfoId } from '../../acme/renewal-info.ts';
import { withDeadline } from '../../base/deadline.ts';
import { hour, minute } from '../../base/duration.ts';
import { type CertificateVersionRow, findVersion } from '../../db/tables/certificate-versions.ts';
import {
  type CertificateRow,
  findCertificateById,
  listAriDue,
  postponeAri,
  updateCertificate,
} from '../../db/tables/certificates.ts';
import { findCaOfDirectory } from '../../db/tables/issuers.ts';
import type { LoggedContext, TimedContext } from '../contexts.ts';
import type { CaContext } from '../issuance/issuance-contexts.ts';
import { nextRenewalAt } from '../versions/renewal-plan.ts';

/** A CA that cannot say is asked again after this. */
const afterFailure = hour;
/** One that has no windows is asked again in case it gets them. */
const afterNone = 24 * hour;

/** How many windows one CA is asked about at the same time. */
const atOnce = 4;

/** Certificates that are put off together; other writes have their turn in between. */
const postponedAtOnce = 500;

/** A certificate whose current version came from a CA with a directory. */
type Asked = { readonly certificate: CertificateRow; readonly version: CertificateVersionRow };

/**
 * Asks about the windows that are due, at most `limit`, each CA by itself and a few at a time: one that fails is not
 * asked about any other certificate for an hour. Returns how many were due.
 */
export async function askDueWindows(
  vault: LoggedContext & CaContext,
  limit: number,
  signal: AbortSignal,
): Promise<number> {
  const due = await listAriDue(vault.db.reader, vault.world.now(), limit);
  const byDirectory = new Map<string, Asked[]>();
  for (const certificate of due) {
    const number = certificate.current_version;
    const version = number === null ? undefined : await findVersion(vault.db.reader, certificate.id, number);
    const directory = version?.directory_url ?? null;
    if (version === undefined || directory === null) await askAgain(vault, certificate, null);
    // After the expiry there is nothing to replace (RFC 9773 §4.3); a clock that is ahead now may not be tomorrow.
    else if (version.not_after <= vault.world.now()) await askAgain(vault, certificate, afterNone);
    else byDirectory.set(directory, [...(byDirectory.get(directory) ?? []), { certificate, version }]);
  }
  await Promise.all([...byDirectory].map(([directory, asked]) => askCa(vault, directory, asked, signal)));
  return due.length;
}

async function askCa(
  vault: LoggedContext & CaContext,
  directory: string,
  asked: readonly Asked[],
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...asked];
  const askOn = async () => {
    for (let next = waiting.shift(); next !== undefined && !signal.aborted; next = waiting.shift()) {
      if (await askWindow(vault, next, signal)) continue;
      waiting.length = 0;
      await postpone(vault, directory);
      return;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, askOn));
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

async function askAgain(
  { db, world }: TimedContext,
  { id }: CertificateRow,
  after: number | null,
): Promise<void> {
  const ari_check_at = after === null ? null : world.now() + after;
  await db.write((writer) => updateCertificate(writer, id, { ari_check_at }));
}

/** Returns whether to query this CA for other certificates; false after a failure that affects all. */
async function askWindow(
  vault: LoggedContext & CaContext,
  { certificate, version }: Asked,
  signal: AbortSignal,
): Promise<boolean> {
  const { db, world, log } = vault;
  const id = renewalInfoId(new X509Certificate(version.certificate_pem).raw);
  const ca = await findCaOfDirectory(db.reader, version.directory_url ?? '');
  if (id === undefined || ca === undefined) {
    await askAgain(vault, certificate, afterNone);
    return true;
  }
  try {
    const info = await withDeadline(world, minute, signal, (deadline) =>
      fetchRenewalInfo(vault.acme.at(ca), id, deadline.signal),
    );
    if (info === undefined) await askAgain(vault, certificate, afterNone);
    else await store(vault, certificate, info);
    return true;
  } catch (error) {
    if (signal.aborted) return true;
    log.warn(
      { err: error, certificate: certificate.name },
      'failed to get the renewal window; retrying in an hour',
    );
    await askAgain(vault, certificate, afterFailure);
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
    const isSame =
      certificate.ari_window_start === windowStart &&
      certificate.ari_window_end === windowEnd &&
      certificate.ari_renew_at !== null;
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
