/**
 * When an ACME client is to renew a certificate (RFC 9773): a window before the expiry, the window of the CA where the
 * vault ordered it there, and at once where the certificate was revoked or its private CA was rotated.
 */
import { X509Certificate } from 'node:crypto';
import { day, hour, minute, second } from '../../../base/duration.ts';
import { serialAndAuthorityKeyId } from '../../../crypto/x509/certificate-id.ts';
import type { Reader } from '../../../db/database.ts';
import {
  type CertificateVersionRow,
  listVersionsWithSerial,
} from '../../../db/tables/certificates/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../../db/tables/certificates/certificates.ts';
import { findRoot, listIntermediates } from '../../../db/tables/issuance/ca-certificates.ts';
import type { IssuerRow } from '../../../db/tables/issuance/issuers.ts';
import type { LoggedContext } from '../../contexts.ts';
import type { CaContext } from '../../issuance-contexts.ts';
import { defaultWindow } from '../../schedule/renewal-policy.ts';
import { refreshWindow } from '../../schedule/renewal-windows.ts';
import { AcmeProblem } from '../protocol/acme-problem.ts';

/** Times in UTC milliseconds; the window ends after it starts. */
export type RenewalWindow = { readonly start: number; readonly end: number };

export type RenewalAdvice = {
  readonly window: RenewalWindow;
  /** When to ask again, in milliseconds from now. */
  readonly retryAfterMs: number;
};

/**
 * How often clients ask (RFC 9773 §4.3.2): often enough to hear of a revocation, and a few times in the life of a short
 * certificate.
 */
const maxBetween = 6 * hour;
const leastBetween = minute;
const asksPerLife = 50;

/** The length of the window of what is replaced at once, so that not all clients come in the same second. */
const rotationWindow = day;

/** What identifies a certificate in renewal information (RFC 9773 §4.1). */
type RenewalInfoId = {
  readonly authorityKeyId: Buffer;
  /** As versions have it: upper-case hexadecimal, without the zero byte that DER puts in front of a set bit. */
  readonly serial: string;
};

/**
 * Bytes in each part of an identifier: a serial number has 20 (RFC 5280 §4.1.2.2) and a zero byte, key identifiers are
 * digests.
 */
const maxPartLength = 64;

const part = /^[A-Za-z0-9_-]+$/;

/** A version of an issuer's certificate, by its identifier. */
export type IdentifiedVersion = {
  readonly certificate: CertificateRow;
  readonly version: CertificateVersionRow;
};

/**
 * The version that an identifier (RFC 9773 §4.1) means, if this issuer issued it. Throws `malformed` for what is no
 * identifier.
 */
export async function identifiedVersion(
  reader: Reader,
  issuer: Pick<IssuerRow, 'id'>,
  text: string,
): Promise<IdentifiedVersion | undefined> {
  const id = parseRenewalInfoId(text);
  if (id === undefined) {
    throw new AcmeProblem(
      'malformed',
      'An identifier of a certificate is its authority key identifier and its serial number, both in base64url without padding, with a dot in between.',
    );
  }
  for (const version of await listVersionsWithSerial(reader, id.serial)) {
    const certificate = await findCertificateById(reader, version.certificate_id);
    if (certificate?.issuer_id !== issuer.id) continue;
    const own = serialAndAuthorityKeyId(new X509Certificate(version.certificate_pem).raw);
    if (own?.authorityKeyId.equals(id.authorityKeyId) === true) return { certificate, version };
  }
  return undefined;
}

/** When to renew the certificate with this identifier. Throws `malformed`, for an unknown one with status 404. */
export async function adviseRenewal(
  vault: LoggedContext & CaContext,
  issuer: Pick<IssuerRow, 'id' | 'name'>,
  text: string,
): Promise<RenewalAdvice> {
  const { db, world } = vault;
  const found = await identifiedVersion(db.reader, issuer, text);
  if (found === undefined) {
    throw new AcmeProblem('malformed', `${issuer.name} issued no certificate with this identifier.`, {
      status: 404,
    });
  }
  await refreshWindow(vault, found, new AbortController().signal);
  const { not_before: notBefore, not_after: notAfter } = found.version;
  const perLife = Math.floor((notAfter - notBefore) / asksPerLife);
  const retryAfterMs = Math.min(Math.max(perLife, leastBetween), maxBetween);
  const certificate = (await findCertificateById(db.reader, found.certificate.id)) ?? found.certificate;
  const { start, end } = await windowOf(db.reader, { ...found, certificate }, world.now());
  return { window: { start, end: Math.max(end, start + second) }, retryAfterMs };
}

/** The parts of an identifier, or undefined unless it is exactly two parts in base64url with a dot in between. */
export function parseRenewalInfoId(text: string): RenewalInfoId | undefined {
  // Four characters have three bytes.
  if (text.length > maxPartLength * 3) return undefined;
  const [authorityKeyId, serial, ...others] = text.split('.').map(bytesOf);
  if (authorityKeyId === undefined || serial === undefined || others.length > 0) return undefined;
  const digits = serial.length > 1 && serial[0] === 0 ? serial.subarray(1) : serial;
  return { authorityKeyId, serial: digits.toString('hex').toUpperCase() };
}

/** Undefined for padding, foreign characters, and bits after the last byte: each part has one form only. */
function bytesOf(text: string): Buffer | undefined {
  if (!part.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text && bytes.length <= maxPartLength ? bytes : undefined;
}

async function windowOf(
  reader: Reader,
  { certificate, version }: IdentifiedVersion,
  now: number,
): Promise<RenewalWindow> {
  const { revoked_at: revokedAt } = version;
  // A window in the past says at once (RFC 9773 §4.2).
  if (revokedAt !== null)
    return { start: Math.min(revokedAt, now) - hour, end: Math.min(revokedAt, now) - second };
  const usual = defaultWindow({ notBefore: version.not_before, notAfter: version.not_after });
  if (version.source === 'local-ca') {
    const rotatedAt = await rotationSince(reader, certificate, version);
    if (rotatedAt !== undefined && rotatedAt < usual.start) {
      return { start: rotatedAt, end: Math.min(rotatedAt + rotationWindow, usual.end) };
    }
    return usual;
  }
  const { ari_window_start: start, ari_window_end: end, current_version: current } = certificate;
  return start === null || end === null || current !== version.version ? usual : { start, end };
}

/** When the private CA got the root that it issues under now, if the version is under a former one. */
async function rotationSince(
  reader: Reader,
  { issuer_id }: CertificateRow,
  { chain_pem: chain }: CertificateVersionRow,
): Promise<number | undefined> {
  const root = await findRoot(reader, issuer_id ?? 0);
  if (root === undefined || chain === '') return undefined;
  // The first of the chain.
  const issuer = new X509Certificate(chain).raw;
  const intermediates = await listIntermediates(reader, root);
  return intermediates.some(({ certificate }) => certificate.equals(issuer)) ? undefined : root.created_at;
}
