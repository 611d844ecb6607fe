/**
 * What a private CA may issue for (RFC 5280 §4.2.1.10). The vault refuses all other names itself, because clients that
 * ignore the constraints in the CA's certificates would accept them.
 */
import { type Identifier, isAddress, parseIdentifier } from '../../base/identifier.ts';
import { parseEmail, parseSubjectField, type Usage } from '../../base/leaf-names.ts';
import { Problem } from '../../base/problem.ts';
import { type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from '../../net/ip-network.ts';
import type { CaSettings } from './ca-settings.ts';

export type PermittedLists = Pick<CaSettings, 'permitDomains' | 'permitIps'>;

/** The names of a certificate. */
export type CertifiedNames = {
  readonly domains?: readonly string[] | undefined;
  readonly uris?: readonly string[] | undefined;
  readonly emails?: readonly string[] | undefined;
  readonly subject?: readonly string[] | undefined;
  readonly usage?: Usage | undefined;
};

/** A name that is not permitted, and the setting that has it. */
export type ForbiddenName = {
  readonly path: 'domains' | 'uris' | 'emails' | 'subject';
  readonly name: string;
};

/** The first name that the CA may not issue for. */
export function forbiddenName(permitted: PermittedLists, names: CertifiedNames): ForbiddenName | undefined {
  if (!isConfined(permitted)) return undefined;
  const { domains = [], uris = [], emails = [], subject = [], usage } = names;
  const candidates = [
    ...domains.map((name) => ({ path: 'domains' as const, name, isFine: isPermitted(permitted, name) })),
    ...uris.map((name) => ({ path: 'uris' as const, name, isFine: isPermittedUri(permitted, name) })),
    ...emails.map((name) => ({ path: 'emails' as const, name, isFine: isPermittedEmail(permitted, name) })),
    ...subject.map((name) => ({
      path: 'subject' as const,
      name,
      isFine: isPermittedField(permitted, name, usage),
    })),
  ];
  const found = candidates.find(({ isFine }) => !isFine);
  return found && { path: found.path, name: found.name };
}

/** Throws `invalid_request` that names what is not permitted and what is. */
export function refuseForbidden(issuer: string, permitted: PermittedLists, names: CertifiedNames): void {
  const forbidden = forbiddenName(permitted, names);
  if (forbidden === undefined) return;
  const message = `issuer ${issuer} does not permit ${forbidden.name}; it permits ${permittedText(permitted)}`;
  throw new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    errors: [{ path: forbidden.path, message }],
  });
}

/** What is permitted, in words. */
export function permittedText({ permitDomains, permitIps }: PermittedLists): string {
  if (permitDomains.length + permitIps.length === 0) return 'any name';
  const domains = permitDomains.map((domain) => `${domain} and names below it`);
  return [...domains, ...permitIps].join(', ');
}

export function isConfined({ permitDomains, permitIps }: PermittedLists): boolean {
  return permitDomains.length + permitIps.length > 0;
}

/** Whether everything that `inner` permits is permitted by `outer`. */
export function isNarrower(inner: PermittedLists, outer: PermittedLists): boolean {
  if (!isConfined(outer)) return true;
  const wider = networksOf(outer);
  return (
    isConfined(inner) &&
    inner.permitDomains.every((domain) => isBelow(domain, outer.permitDomains)) &&
    networksOf(inner).every(({ family, bytes, length }) =>
      wider.some((network) => network.length <= length && isInside({ family, bytes, text: '' }, [network])),
    )
  );
}

function networksOf({ permitIps }: PermittedLists): IpNetwork[] {
  return permitIps.flatMap((text) => parseIpNetwork(text) ?? []);
}

function isPermitted(permitted: PermittedLists, name: string): boolean {
  const address = parseIpAddress(name);
  // An IPv4 address in the form of IPv6 is no address of an IPv4 network to verifiers, which compare bytes.
  const isMapped = address?.family === 4 && name.includes(':');
  if (address !== undefined) return !isMapped && isInside(address, networksOf(permitted));
  return isBelow(name.replace(/^\*\./, ''), permitted.permitDomains);
}

function isBelow(name: string, domains: readonly string[]): boolean {
  const lower = name.toLowerCase();
  return domains.some((domain) => lower === domain || lower.endsWith(`.${domain}`));
}

/** Of URIs, only those with a host and nothing that verifiers may read as one: constraints apply to the host alone. */
const plainAuthority = /^[A-Za-z][A-Za-z0-9+.-]*:\/\/([A-Za-z0-9._-]+)(?::\d{1,5})?(?:[/?#]|$)/;

/** The host that all verifiers find in a URI; undefined if there is none. */
export function hostOfUri(uri: string): string | undefined {
  // OpenSSL takes the host to end at the first colon or slash.
  return /^[^/]*\/\/[^/]*[?#]/.test(uri) ? undefined : plainAuthority.exec(uri)?.[1];
}

function isPermittedUri({ permitDomains }: PermittedLists, uri: string): boolean {
  const host = hostOfUri(uri);
  return host !== undefined && isBelow(host, permitDomains);
}

function isPermittedEmail({ permitDomains }: PermittedLists, email: string): boolean {
  return isBelow(email.slice(email.lastIndexOf('@') + 1), permitDomains);
}

/** A common name of several labels, as OpenSSL takes one for a DNS name. */
export const hostLike = /^[A-Za-z0-9_*-]+(?:\.[A-Za-z0-9_-]+)+$/;

/** Only a common name can be the name of a host or a mailbox. */
function isPermittedField(permitted: PermittedLists, text: string, usage: Usage = 'both'): boolean {
  const { field, value } = parseSubjectField(text) ?? {};
  if (field !== 'CN' || value === undefined) return true;
  const email = parseEmail(value);
  if (email !== undefined) return isPermittedEmail(permitted, email);
  const host = parseIdentifier(value) ?? (hostLike.test(value) ? (value as Identifier) : undefined);
  if (host === undefined) return true;
  // One label names a person or a machine of the local network; clients know no host by it if it is not for servers.
  const isLabel = !isAddress(host) && !host.includes('.');
  return (isLabel && usage === 'client') || isPermitted(permitted, host);
}
