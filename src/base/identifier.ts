/**
 * What a certificate is for: DNS names, wildcards and IP addresses, normalized so that equal names are always written
 * the same way (RFC 5280 §4.2.1.6, RFC 8738).
 */
import { isIP } from 'node:net';
import { domainToASCII } from 'node:url';

declare const brand: unique symbol;

/** A normalized DNS name (`*.` in front allowed), IPv4 or IPv6 address. */
export type Identifier = string & { readonly [brand]: 'Identifier' };

/** The URL host parser, which handles IDNA, would stop at these characters, drop them or decode them. */
const noPartOfName = /[\s\p{Cc}/\\?#%]/u;
const maxNameLength = 253;
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** The rule in words, for error messages. */
export const identifierRule =
  'a domain is a DNS name such as www.example.com, a wildcard such as *.example.com, or an IP address';

/**
 * Every identifier matches it; as JSON Schema says it, for generated clients. Names in other scripts become A-labels.
 */
export const identifierPattern = '^(\\*\\.)?[^\\x00-,/;-@\\[-`{-\\x7f]+$';

/** The normalized name (lower case, A-labels, no trailing dot, shortest IPv6), or undefined if invalid. */
export function parseIdentifier(text: string): Identifier | undefined {
  if (isIP(text) !== 0) return normalAddress(text);
  if (noPartOfName.test(text)) return undefined;
  const wildcard = text.startsWith('*.');
  const ascii = domainToASCII(wildcard ? text.slice(2) : text).replace(/\.$/, '');
  const labels = ascii.split('.');
  if (!labels.every((part) => label.test(part)) || isIP(ascii) !== 0) return undefined;
  if (wildcard && labels.length < 2) return undefined;
  const name = wildcard ? `*.${ascii}` : ascii;
  return name.length > maxNameLength ? undefined : (name as Identifier);
}

/** Whether the identifier is an IP address rather than a DNS name. */
export function isAddress(identifier: Identifier): boolean {
  return isIP(identifier) !== 0;
}

function normalAddress(text: string): Identifier | undefined {
  if (isIP(text) === 4) return text as Identifier;
  // A zone (fe80::1%eth0) is only meaningful on one host; a certificate cannot contain it.
  if (text.includes('%')) return undefined;
  return new URL(`http://[${text}]/`).hostname.slice(1, -1) as Identifier;
}
