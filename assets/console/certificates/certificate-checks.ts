/**
 * Validates a new certificate while its form is filled in. The API validates it again;
 * test/console/certificates/certificate-checks.test.ts checks that both give the same messages.
 */
import { newCertNameRule, parseNewCertName } from '../../../src/base/cert-name.ts';
import { day, minute, parseDuration } from '../../../src/base/duration.ts';

export type CertificateDraft = {
  readonly name: string;
  /** As returned by `domainsIn`. */
  readonly domains: readonly string[];
  readonly issuer: string;
  readonly fallbackIssuer: string;
  readonly keyType: string;
  readonly lifetime: string;
  /** For which side of TLS; empty for both. */
  readonly usage: '' | 'server' | 'client';
  readonly profile: string;
  readonly challenge: string;
  readonly reusesKey: boolean;
  /** A signing request in PEM; empty if the vault generates the key. */
  readonly csr: string;
  /** Separated by commas. */
  readonly labels: string;
};

/**
 * Splits text into distinct names, separated by line breaks, spaces, commas or semicolons. Of a URL it takes the host.
 */
export function domainsIn(text: string): string[] {
  const parts = text.split(/[\s,;]+/).filter((part) => part !== '');
  return [...new Set(parts.map((part) => (part.includes('://') ? hostOf(part) : part)))];
}

function hostOf(url: string): string {
  const host = URL.parse(url)?.hostname.replace(/^\[(.*)\]$/, '$1') ?? '';
  return host === '' ? url : host;
}

export const isWildcard = (domain: string): boolean => domain.startsWith('*.');

/** The API's error messages by path, such as `domains.0`. `isAcme` is true if the issuer is an ACME CA. */
export function checkCertificate(draft: CertificateDraft, isAcme: boolean): Record<string, string> {
  const found: Record<string, string> = {};
  if (parseNewCertName(draft.name) === undefined)
    found.name = `${quoted(draft.name)} is not a name: ${newCertNameRule}`;
  if (draft.domains.length === 0 && draft.csr === '') found.domains = 'at least one domain is required';
  if (draft.domains.length > 100) found.domains = 'a certificate has at most 100 domains';
  for (const [index, domain] of draft.domains.entries()) {
    if (!isIdentifier(domain))
      found[`domains.${index}`] = `${quoted(domain)} is not a domain: ${identifierRule}`;
  }
  if (draft.lifetime !== '' && !isLifetime(draft.lifetime)) {
    found.lifetime = `${quoted(draft.lifetime)} is not a lifetime: write a number and m, h, d or y, from 5m to 3650d, such as 90d`;
  }
  if (draft.profile !== '' && !/^[\x21-\x7e]{1,64}$/.test(draft.profile)) {
    found.profile = 'a profile is one word such as shortlived';
  }
  if (Object.keys(found).length === 0) Object.assign(found, unsupported(draft, isAcme));
  return found;
}

/** The first reason why this type of issuer cannot issue the certificate. */
function unsupported(draft: CertificateDraft, isAcme: boolean): Record<string, string> {
  const { issuer, keyType, challenge, domains, csr } = draft;
  if (!isAcme) {
    return challenge === ''
      ? {}
      : { challenge: `issuer ${issuer} is not an ACME CA and does not support challenges` };
  }
  if (csr === '' && keyType === 'ed25519') {
    return { key_type: 'ACME CAs do not issue certificates for Ed25519 keys; use ec256, ec384 or RSA' };
  }
  if (draft.lifetime !== '') {
    return { lifetime: `issuer ${issuer} chooses the lifetime itself; choose a profile instead` };
  }
  const byDns = challenge.startsWith('dns-');
  const wildcard = domains.find(isWildcard);
  if (wildcard !== undefined && challenge !== '' && !byDns) {
    return { challenge: `${wildcard} can only be validated with dns-01` };
  }
  const address = domains.find(isAddress);
  if (address !== undefined && byDns) {
    return { challenge: `${address} can only be validated with http-01 or tls-alpn-01` };
  }
  return {};
}

/** The longest zone that contains the domain. */
export function zoneOf(domain: string, zones: readonly string[]): string | undefined {
  const name = domain.replace(/^\*\./, '').toLowerCase();
  const containing = zones.filter((zone) => name === zone || name.endsWith(`.${zone}`));
  return containing.sort((one, other) => other.length - one.length)[0];
}

const identifierRule =
  'a domain is a DNS name such as www.example.com, a wildcard such as *.example.com, or an IP address';

function isIdentifier(text: string): boolean {
  if (isAddress(text)) return true;
  if (/[\s\p{Cc}/\\?#%:@[\]]/u.test(text)) return false;
  const name = isWildcard(text) ? text.slice(2) : text;
  const ascii = URL.parse(`http://${name}/`)?.hostname.replace(/\.$/, '') ?? '';
  const labels = ascii.split('.');
  if (!labels.every((label) => /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(label))) return false;
  if (isWildcard(text) && labels.length < 2) return false;
  return !isAddress(ascii) && (isWildcard(text) ? ascii.length + 2 : ascii.length) <= 253;
}

export function isAddress(text: string): boolean {
  if (/^(\d{1,3}\.){3}\d{1,3}$/.test(text))
    return text.split('.').every((part) => part === String(Number(part)) && Number(part) < 256);
  return text.includes(':') && /^[0-9a-f:.]+$/i.test(text) && URL.canParse(`http://[${text}]/`);
}

function isLifetime(text: string): boolean {
  const ms = parseDuration(text);
  return ms !== undefined && ms >= 5 * minute && ms <= 3650 * day;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
