/**
 * What else a certificate of the private CA can say about its holder: URIs such as SPIFFE IDs, email addresses, and
 * fields of the subject, which some consumers read (RFC 5280 §4.2.1.6, §4.1.2.6).
 */
import { isAddress, parseIdentifier } from './identifier.ts';

// biome-ignore lint/plugin: the side of a connection, not a header.
export const usages = ['server', 'client', 'both'] as const;

/** The TLS role of the holder. */
export type Usage = (typeof usages)[number];

/** The fields of a subject, in the order in which they are written. */
export const subjectFields = ['C', 'ST', 'L', 'O', 'OU', 'CN'] as const;

type SubjectField = (typeof subjectFields)[number];

const maxUriLength = 2048;
const maxEmailLength = 254;
/** The upper bound of each field but the country (RFC 5280 §A.1). */
const maxFieldLength = 64;

const uriForm = /^[A-Za-z][A-Za-z0-9+.-]*:[\x21\x23-\x3b\x3d\x3f-\x5b\x5d\x5f\x61-\x7a\x7e]+$/;
const trustDomain = /^[a-z0-9._-]{1,255}$/;
const pathSegment = /^[A-Za-z0-9._-]+$/;
const localPart = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}$/;

export const uriRule =
  'a URI has a scheme and a host, such as spiffe://example.org/web, and no characters outside ASCII';

/** The URI, or undefined if it is not absolute, has no host, or is not a SPIFFE ID although its scheme says so. */
export function parseUri(text: string): string | undefined {
  if (text.length > maxUriLength || !uriForm.test(text)) return undefined;
  if (/^spiffe:/i.test(text)) return isSpiffeId(text) ? text : undefined;
  // Without an authority (urn:…) there is no host; URL.parse would take one from the path.
  const hasHost = !/^[^:]+:\/\//.test(text) || /^[^:]+:\/\/[^/?#]/.test(text);
  return hasHost && URL.canParse(text) ? text : undefined;
}

/** Whether the URI is a SPIFFE ID; a certificate has no other URI beside one (X509-SVID §2). */
export function isSpiffe(uri: string): boolean {
  return uri.startsWith('spiffe:');
}

function isSpiffeId(text: string): boolean {
  const [scheme, empty, domain = '', ...path] = text.split('/');
  return (
    scheme === 'spiffe:' &&
    empty === '' &&
    trustDomain.test(domain) &&
    path.every((segment) => pathSegment.test(segment) && segment !== '.' && segment !== '..')
  );
}

export const emailRule = 'an email address has the form name@example.com, in ASCII';

/** The address with its domain normalized, or undefined if it is invalid. */
export function parseEmail(text: string): string | undefined {
  const at = text.lastIndexOf('@');
  const local = text.slice(0, Math.max(at, 0));
  const host = parseIdentifier(text.slice(at + 1));
  if (at < 1 || host === undefined || isAddress(host) || host.startsWith('*.')) return undefined;
  const email = `${local}@${host}`;
  return localPart.test(local) && email.length <= maxEmailLength ? email : undefined;
}

export const subjectRule = `a field of a subject is ${subjectFields.join(', ')} with a value, such as CN=alice; C has two letters, the others up to ${maxFieldLength} characters`;

/**
 * Field and value of `CN=alice`; undefined if the field is unknown or the value is empty, too long or not printable.
 */
export function parseSubjectField(
  text: string,
): { readonly field: SubjectField; readonly value: string } | undefined {
  const [name = ''] = text.split('=', 1);
  const field = subjectFields.find((known) => known === name.toUpperCase());
  const value = text.slice(name.length + 1).trim();
  if (field === undefined || value === '' || /[\p{Cc}\p{Cf}\p{Cs}]/u.test(value)) return undefined;
  if (field === 'C') return /^[A-Za-z]{2}$/.test(value) ? { field, value: value.toUpperCase() } : undefined;
  return [...value].length <= maxFieldLength ? { field, value } : undefined;
}
