/**
 * Rate limits that hold renewals back: limits that the CA reported, and published limits that the vault counts itself.
 */
import { hash } from 'node:crypto';
import type { RateLimit } from '../../acme/rate-limit.ts';
import { day, hour } from '../../base/duration.ts';
import { parseJson } from '../../base/json.ts';
import type { Reader } from '../../db/database.ts';
import type { IssuanceHoldsTable } from '../../db/schema/schema-renewals.ts';
import { findVersion } from '../../db/tables/certificates/certificate-versions.ts';
import { type CertificateRow, findCertificateById } from '../../db/tables/certificates/certificates.ts';
import {
  failedOrders,
  issuedForNames,
  issuedNear,
  issuedWithoutSet,
  listHolds,
  type NamesUnderWay,
  namesUnderWay,
  orderedBefore,
} from '../../db/tables/issuance/issuance-holds.ts';
import { type AcmeIssuerRow, findAcmeIssuer } from '../../db/tables/issuance/issuers.ts';
import type { RenewalRow } from '../../db/tables/renewals/renewals.ts';
import { registeredDomains } from '../dns-providers/registered-domain.ts';

/** Until when (UTC milliseconds) a renewal is held back, and the limit in words. */
export type Hold = { readonly until: number; readonly reason: string };

type IssuanceLimit = { readonly count: number; readonly within: number };

/**
 * Limits by what they count: orders of an account, certificates per set of names or per registered domain, failed
 * validations.
 */
type PublishedLimits = {
  readonly ordersPerAccount: IssuanceLimit;
  readonly certificatesPerSet: IssuanceLimit;
  readonly certificatesPerDomain: IssuanceLimit;
  readonly failuresPerName: IssuanceLimit;
};

/**
 * Published limits by directory, so that the vault stays under them before a CA has to reject an order. Let's Encrypt:
 * https://letsencrypt.org/docs/rate-limits/ (2026). Orders that name the certificate they replace (RFC 9773) are
 * exempt; orders for a set of names that it issued before count only per set, and use up no other limit.
 */
const published: Readonly<Record<string, PublishedLimits>> = {
  'https://acme-v02.api.letsencrypt.org/directory': {
    ordersPerAccount: { count: 300, within: 3 * hour },
    certificatesPerSet: { count: 5, within: 7 * day },
    certificatesPerDomain: { count: 50, within: 7 * day },
    failuresPerName: { count: 5, within: hour },
  },
};

/** A digest of a set of names, independent of their order. */
export function nameSetOf(names: readonly string[]): string {
  return hash('sha256', names.toSorted().join(' '), 'base64url').slice(0, 22);
}

/**
 * The limit that holds the renewal back, or undefined. Existing orders always continue. An order that replaces a
 * certificate of the same account at a CA with ARI (RFC 9773 §5) is limited only by failed validations.
 */
export async function holdOn(reader: Reader, renewal: RenewalRow, now: number): Promise<Hold | undefined> {
  if (renewal.issuer_id === null || renewal.order_url !== null) return undefined;
  const ca = await findAcmeIssuer(reader, renewal.issuer_id);
  const certificate = ca && (await findCertificateById(reader, renewal.certificate_id));
  if (ca === undefined || certificate === undefined) return undefined;
  return holdOnOrder(reader, ca, certificate, now);
}

/** What of a certificate decides whether limits hold its order back; one that is not stored yet has the id 0. */
export type OrderedCertificate = Pick<
  CertificateRow,
  'id' | 'domains' | 'current_version' | 'ari_window_start'
>;

/** The limit that holds back a new order for the certificate at this CA, or undefined. */
export async function holdOnOrder(
  reader: Reader,
  ca: AcmeIssuerRow,
  certificate: OrderedCertificate,
  now: number,
): Promise<Hold | undefined> {
  const limits = publishedLimits(ca.directory_url);
  const underWay = limits === undefined ? [] : await namesUnderWay(reader, ca.issuer_id);
  if (limits !== undefined) {
    const failed = await heldByFailures(reader, ca, { certificate, underWay }, limits.failuresPerName, now);
    if (failed !== undefined) return failed;
  }
  if (await isExempt(reader, certificate, ca)) return undefined;
  const told = await listHolds(reader, ca.directory_url, now);
  if (told.length === 0 && limits === undefined) return undefined;
  const names = parseJson(certificate.domains);
  const domains = await registeredDomains(names);
  const own = nameSetOf(names);
  const refused = told.find(({ subject }) => subject === own || domains.includes(subject));
  if (refused !== undefined || limits === undefined) return refused;

  const twins = underWay.filter(({ name_set }) => name_set === own).length;
  const issued = await issuedForSet(reader, ca, own, limits.certificatesPerSet, now);
  const set = held(issued, limits.certificatesPerSet, twins, now, 'certificates per set of names');
  if (set !== undefined || issued.length > 0 || (await hasCurrentNames(reader, certificate, ca))) return set;
  const perAccount = limits.ordersPerAccount;
  const count = Math.max(1, perAccount.count - underWay.length);
  const ordered = ca.account_id === null ? undefined : await orderedBefore(reader, ca.account_id, count, now);
  if (ordered !== undefined && ordered + perAccount.within > now) {
    return limitReached(ordered + perAccount.within, perAccount, 'orders per account');
  }
  for (const domain of domains) {
    const isUnder = (list: CertificateRow['domains']) => parseJson(list).some((name) => isIn(name, domain));
    const since = now - limits.certificatesPerDomain.within;
    const near = await issuedNear(reader, ca.directory_url, domain, since);
    const times = near.filter(({ domains: list }) => isUnder(list)).map(({ created_at }) => created_at);
    const others = underWay.filter(({ domains: list }) => isUnder(list)).length;
    const what = `certificates per registered domain (${domain})`;
    const reached = held(times, limits.certificatesPerDomain, others, now, what);
    if (reached !== undefined) return reached;
  }
  return undefined;
}

/** The published limits of the CA with this directory, or undefined for a CA that publishes none. */
export function publishedLimits(directoryUrl: string): PublishedLimits | undefined {
  return Object.hasOwn(published, directoryUrl) ? published[directoryUrl] : undefined;
}

/**
 * The hold to store for a reported rate limit so that it applies to other certificates too; undefined if it concerns
 * only this certificate, or names a domain that the certificate does not have.
 */
export async function sharedHold(
  limit: RateLimit,
  names: readonly string[],
): Promise<Pick<IssuanceHoldsTable, 'scope' | 'subject'> | undefined> {
  if (limit.scope === 'names') return { scope: 'names', subject: nameSetOf(names) };
  if (limit.scope !== 'domain') return undefined;
  const isOwn = (await registeredDomains(names)).includes(limit.domain);
  return isOwn ? { scope: 'domain', subject: limit.domain } : undefined;
}

/** When the CA issued for this set of names, newest first. */
async function issuedForSet(
  reader: Reader,
  { directory_url }: AcmeIssuerRow,
  set: string,
  { count, within }: IssuanceLimit,
  now: number,
): Promise<number[]> {
  const issued = await issuedForNames(reader, directory_url, set, count);
  const earlier = await issuedWithoutSet(reader, directory_url, now - within);
  const same = earlier.flatMap(({ at, names }) => (nameSetOf(names) === set ? at : []));
  return [...issued, ...same].toSorted((one, other) => other - one);
}

/**
 * The hold of the name that may fail no more. Which name of an order failed is not stored, so that all of them count:
 * at worst, certificates that share a name with a failing one wait for an hour. Once a name has failed, orders for it
 * that are under way count as well.
 */
async function heldByFailures(
  reader: Reader,
  { account_id }: AcmeIssuerRow,
  {
    certificate,
    underWay,
  }: { readonly certificate: OrderedCertificate; readonly underWay: readonly NamesUnderWay[] },
  limit: IssuanceLimit,
  now: number,
): Promise<Hold | undefined> {
  const failures = await failedOrders(reader, account_id, certificate, now - limit.within, limit.count);
  const times = new Map<string, number[]>();
  for (const { at, names } of failures.toSorted((one, other) => other.at - one.at)) {
    for (const name of names) times.set(name, [...(times.get(name) ?? []), at]);
  }
  const alongside = underWay.flatMap(({ domains }) => parseJson(domains));
  const holds = parseJson(certificate.domains).flatMap((name) => {
    const failed = times.get(name) ?? [];
    const others = failed.length === 0 ? 0 : alongside.filter((other) => other === name).length;
    return held(failed, limit, others, now, 'failed validations per name') ?? [];
  });
  return holds.toSorted((one, other) => other.until - one.until)[0];
}

/** Whether the order replaces a certificate of the same CA and account. */
async function isExempt(
  reader: Reader,
  { id, current_version: number, ari_window_start }: OrderedCertificate,
  ca: AcmeIssuerRow,
): Promise<boolean> {
  if (number === null || ari_window_start === null) return false;
  const version = await findVersion(reader, id, number);
  return version?.directory_url === ca.directory_url && version.acme_account_id === ca.account_id;
}

/** Whether the current version is from this CA and has exactly the same names, so that the order is a renewal. */
async function hasCurrentNames(
  reader: Reader,
  { id, current_version: number, domains }: OrderedCertificate,
  ca: AcmeIssuerRow,
): Promise<boolean> {
  const version = number === null ? undefined : await findVersion(reader, id, number);
  if (version?.directory_url !== ca.directory_url) return false;
  return nameSetOf(parseJson(version.domains)) === nameSetOf(parseJson(domains));
}

/** Holds until the oldest event that counts leaves the window of the limit; `more` events are about to be added. */
function held(
  times: readonly number[],
  limit: IssuanceLimit,
  more: number,
  now: number,
  what: string,
): Hold | undefined {
  const at = limit.count - more;
  if (at <= 0) return limitReached(now + limit.within / limit.count, limit, what);
  const oldest = times[at - 1];
  if (oldest === undefined || oldest + limit.within <= now) return undefined;
  return limitReached(oldest + limit.within, limit, what);
}

function limitReached(until: number, { count, within }: IssuanceLimit, what: string): Hold {
  const hours = within / 3_600_000;
  const window = hours % 24 === 0 ? `${hours / 24} days` : hours === 1 ? 'an hour' : `${hours} hours`;
  return { until, reason: `the CA allows ${count} ${what} within ${window}` };
}

function isIn(name: string, domain: string): boolean {
  return name === domain || name.endsWith(`.${domain}`);
}
