/**
 * What the CA certificates above a leaf permit (RFC 5280 §4.2.1.10), where a company's CA set it. The vault refuses
 * other names itself. Where verifiers differ, the strictest counts: what is issued is valid for all of them.
 */
import { isAddress, parseIdentifier } from '../../base/identifier.ts';
import { usages as allUsages, parseEmail, parseSubjectField, type Usage } from '../../base/leaf-names.ts';
import { Problem } from '../../base/problem.ts';
import {
  type AuthorityCertificate,
  readAuthorityCertificate,
} from '../../crypto/x509/authority-certificate.ts';
import { titleOf } from '../../crypto/x509/certificate-facts.ts';
import type { ConstrainedNames, ConstrainedNetwork } from '../../crypto/x509/constrained-names.ts';
import { parseIpAddress } from '../../net/ip-network.ts';
import { type CertifiedNames, hostLike, hostOfUri } from './permitted-names.ts';

/** A name that a CA certificate of the chain forbids. */
export type InheritedRefusal = {
  readonly path: 'domains' | 'uris' | 'emails' | 'subject' | 'usage';
  readonly name: string;
  /** The subject of the certificate. */
  readonly by: string;
};

/**
 * The first name that one of the CA certificates (DER) forbids, or else the usage; throws a plain error for bytes that
 * the import refuses.
 */
export function forbiddenBy(chain: readonly Buffer[], names: CertifiedNames): InheritedRefusal | undefined {
  const certificates = chain.map(readAuthorityCertificate);
  for (const check of [forbiddenIn, forbiddenUsage]) {
    for (const certificate of certificates) {
      const found = check(certificate, names);
      if (found !== undefined) return { ...found, by: titleOf(certificate.x509) };
    }
  }
  return undefined;
}

/** Throws `invalid_request` that names what is forbidden, and the certificate that forbids it. */
export function refuseForbiddenBy(issuer: string, chain: readonly Buffer[], names: CertifiedNames): void {
  const forbidden = forbiddenBy(chain, names);
  if (forbidden === undefined) return;
  const { path, name, by } = forbidden;
  const message = `issuer ${issuer} cannot issue for ${name}: the certificate ${by} above it does not permit it`;
  throw new Problem('invalid_request', {
    detail: `${message.charAt(0).toUpperCase()}${message.slice(1)}.`,
    errors: [{ path, message }],
  });
}

const sides = allUsages.filter((usage) => usage !== 'both');

type Candidate = Omit<InheritedRefusal, 'by'> & { readonly isFine: boolean };

function forbiddenIn(
  { constraints }: AuthorityCertificate,
  { domains = [], uris = [], emails = [], subject = [], usage = 'both' }: CertifiedNames,
): Omit<InheritedRefusal, 'by'> | undefined {
  if (constraints === undefined) return undefined;
  const candidates: Candidate[] = [
    ...domains.map((name) => ({ path: 'domains' as const, name, isFine: isHost(constraints, name) })),
    ...uris.map((name) => ({ path: 'uris' as const, name, isFine: isUri(constraints, name) })),
    ...emails.map((name) => ({ path: 'emails' as const, name, isFine: isEmail(constraints, name) })),
    ...subject.map((name) => ({ path: 'subject' as const, name, isFine: isField(constraints, name, usage) })),
  ];
  const found = candidates.find(({ isFine }) => !isFine);
  return found && { path: found.path, name: found.name };
}

function forbiddenUsage(
  { usages }: AuthorityCertificate,
  { usage = 'both' }: CertifiedNames,
): Omit<InheritedRefusal, 'by'> | undefined {
  const asked = sides.filter((side) => usage === 'both' || usage === side);
  const found = asked.find((side) => usages?.[side] === false);
  return found && { path: 'usage', name: `${found}s` };
}

function isHost(constraints: ConstrainedNames, name: string): boolean {
  return parseIpAddress(name) === undefined ? isDomain(constraints, name) : isIp(constraints, name);
}

/** A wildcard stands for all hosts directly below its domain. */
function isDomain({ permitted, excluded }: ConstrainedNames, name: string): boolean {
  const lower = name.toLowerCase();
  const parent = lower.startsWith('*.') ? lower.slice(2) : undefined;
  const isPermitted = (base: string) =>
    base === '' || (base.startsWith('.') ? lower.endsWith(base) : isOrIsBelow(parent ?? lower, base));
  const isExcluded = (base: string) => {
    const domain = base.replace(/^\./, '');
    if (domain === '' || isOrIsBelow(parent ?? lower, domain)) return true;
    return parent !== undefined && domain.slice(domain.indexOf('.') + 1) === parent;
  };
  return isAmong(permitted.dns, isPermitted) && !excluded.dns.some(isExcluded);
}

/** Verifiers compare the bytes of an address; those of an IPv4 address in the form of IPv6 are in no IPv4 network. */
function isIp({ permitted, excluded }: ConstrainedNames, name: string): boolean {
  const address = parseIpAddress(name);
  if (address === undefined) return false;
  const isMapped = address.family === 4 && name.includes(':');
  if (isMapped) return permitted.networks.length + excluded.networks.length === 0;
  const isIn = ({ address: base, mask }: ConstrainedNetwork) =>
    base.length === address.bytes.length &&
    address.bytes.every((byte, at) => ((byte ^ (base[at] ?? 0)) & (mask[at] ?? 0)) === 0);
  return isAmong(permitted.networks, isIn) && !excluded.networks.some(isIn);
}

/** A constraint is a mailbox, a host, or the hosts below one. */
function isEmail({ permitted, excluded }: ConstrainedNames, email: string): boolean {
  const host = email.slice(email.lastIndexOf('@') + 1).toLowerCase();
  const lower = email.toLowerCase();
  const isPermitted = (base: string) =>
    base.includes('@') ? `${email.slice(0, email.lastIndexOf('@'))}@${host}` === base : isInScope(host, base);
  const isExcluded = (base: string) =>
    base.includes('@') ? lower === base.toLowerCase() : isNear(host, base);
  return isAmong(permitted.email, isPermitted) && !excluded.email.some(isExcluded);
}

/** Only hosts with a name can be compared; others are refused where there are constraints. */
function isUri({ permitted, excluded }: ConstrainedNames, uri: string): boolean {
  if (permitted.uri.length + excluded.uri.length === 0) return true;
  const host = hostOfUri(uri)?.toLowerCase();
  if (host === undefined || parseIpAddress(host) !== undefined) return false;
  return (
    isAmong(permitted.uri, (base) => isInScope(host, base)) &&
    !excluded.uri.some((base) => isNear(host, base))
  );
}

/** A common name is compared as what it looks like; OpenSSL takes an address in it for a domain. */
function isField(constraints: ConstrainedNames, text: string, usage: Usage): boolean {
  const { field, value } = parseSubjectField(text) ?? {};
  if (field !== 'CN' || value === undefined) return true;
  const email = parseEmail(value);
  if (email !== undefined) return isEmail(constraints, email);
  const host = parseIdentifier(value);
  if (host !== undefined && isAddress(host) && !isIp(constraints, host)) return false;
  if (host === undefined && !hostLike.test(value)) return true;
  // One label in a certificate for clients names a person or a machine, as for the constraints of the vault's own CAs.
  const isLabel = !value.includes('.') && !value.includes(':');
  return (isLabel && usage === 'client') || isDomain(constraints, value);
}

/** Without a constraint of its kind, a name is permitted. */
function isAmong<Base>(bases: readonly Base[], isWithin: (base: Base) => boolean): boolean {
  return bases.length === 0 || bases.some(isWithin);
}

/** A host stands for itself, with a dot in front for the hosts below. */
function isInScope(host: string, base: string): boolean {
  return base === '' || (base.startsWith('.') ? host.endsWith(base) : host === base);
}

/** Some verifiers exclude the hosts below a host as well. */
function isNear(host: string, base: string): boolean {
  const domain = base.replace(/^\./, '');
  return domain === '' || isOrIsBelow(host, domain);
}

function isOrIsBelow(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}
