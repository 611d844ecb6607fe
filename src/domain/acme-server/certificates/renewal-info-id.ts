/** Identifiers of certificates in renewal information (RFC 9773 §4.1), as clients send them. */

/** What identifies a certificate. */
export type RenewalInfoId = {
  readonly authorityKeyId: Buffer;
  /** As versions have it: upper-case hexadecimal, without the zero byte that DER puts in front of a set bit. */
  readonly serial: string;
};

/** Bytes in each part: a serial number has 20 (RFC 5280 §4.1.2.2) and a zero byte, key identifiers are digests. */
const longestPart = 64;

const part = /^[A-Za-z0-9_-]+$/;

/** The parts of an identifier, or undefined unless it is exactly two parts in base64url with a dot in between. */
export function parseRenewalInfoId(text: string): RenewalInfoId | undefined {
  // Four characters have three bytes.
  if (text.length > longestPart * 3) return undefined;
  const [authorityKeyId, serial, ...others] = text.split('.').map(bytesOf);
  if (authorityKeyId === undefined || serial === undefined || others.length > 0) return undefined;
  const digits = serial.length > 1 && serial[0] === 0 ? serial.subarray(1) : serial;
  return { authorityKeyId, serial: digits.toString('hex').toUpperCase() };
}

/** Undefined for padding, foreign characters, and bits after the last byte: each part has one form only. */
function bytesOf(text: string): Buffer | undefined {
  if (!part.test(text)) return undefined;
  const bytes = Buffer.from(text, 'base64url');
  return bytes.toString('base64url') === text && bytes.length <= longestPart ? bytes : undefined;
}
