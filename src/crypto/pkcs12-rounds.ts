/**
 * How much password hashing a PKCS#12 file asks for, found without doing any of it. The file is read at least as leniently
 * as OpenSSL reads it (BER, not only DER), so that no way of writing hides a count.
 */

type Element = {
  readonly tag: number;
  readonly isConstructed: boolean;
  readonly start: number;
  /** Where the content ends; undefined where its length is indefinite. */
  readonly end: number | undefined;
};

const integer = 0x02;
const octetString = 0x04;
const objectIdentifier = 0x06;
const sequence = 0x30;
/** 1.3.6.1.4.1.11591.4.11 (RFC 7914 §7.1), whose work is the product of three numbers. */
const scrypt = Buffer.from('2b06010401da47040b', 'hex');
/** OpenSSL gives up earlier. */
const deepest = 100;

/**
 * The rounds that all parts of the file ask for together; infinite where that cannot be told. Salt and count of rounds
 * stand side by side in every scheme that PKCS#12 uses but scrypt (RFC 7292 §4 and §B, RFC 8018 §A), so an INTEGER after
 * an OCTET STRING is a count. What a file holds encrypted is not seen.
 */
export function roundsIn(bytes: Buffer): number {
  const found = { rounds: 0 };
  walk(bytes, 'whole', 0, found);
  return found.rounds;
}

/** Whether the bytes begin as a PKCS#12 file does: a sequence whose first member is the version, 3 (RFC 7292 §4). */
export function looksLikePkcs12(bytes: Buffer): boolean {
  const outer = elementAt(bytes, 0);
  return (
    outer?.tag === sequence && bytes.subarray(outer.start, outer.start + 3).equals(Buffer.from([2, 1, 3]))
  );
}

/**
 * Adds up what the elements ask for, and returns where they end: with the bytes or, where the length is indefinite, behind
 * the mark that ends it. Nothing is read behind what is malformed, because OpenSSL stops there too.
 */
function walk(
  bytes: Buffer,
  length: 'whole' | 'indefinite',
  depth: number,
  found: { rounds: number },
): number {
  if (depth > deepest) found.rounds = Number.POSITIVE_INFINITY;
  let offset = 0;
  let followsOctets = false;
  while (offset < bytes.length && found.rounds !== Number.POSITIVE_INFINITY) {
    const element = elementAt(bytes, offset);
    if (element === undefined) return bytes.length;
    const { tag, isConstructed, start, end } = element;
    if (length === 'indefinite' && tag === 0 && end === start) return end;
    const content = bytes.subarray(start, end);
    const universal = tag & ~0x20;
    if (universal === octetString) {
      const { octets, read } = isConstructed
        ? joined(content, lengthOf(element), depth)
        : { octets: content, read: content.length };
      if (octets === undefined) found.rounds = Number.POSITIVE_INFINITY;
      else if (octets[0] === sequence) walk(octets, 'whole', depth + 1, found);
      offset = end ?? start + read;
    } else if (isConstructed) {
      const stopped = start + walk(content, lengthOf(element), depth + 1, found);
      offset = end ?? stopped;
    } else {
      if (tag === integer && followsOctets) found.rounds += numberIn(content);
      if (tag === objectIdentifier && content.equals(scrypt)) found.rounds = Number.POSITIVE_INFINITY;
      offset = end ?? bytes.length;
    }
    followsOctets = universal === octetString;
  }
  return offset;
}

/** The segments of a constructed OCTET STRING as one, and how many bytes they took; no octets where they are nested too deep. */
function joined(
  content: Buffer,
  length: 'whole' | 'indefinite',
  depth: number,
): { readonly octets: Buffer | undefined; readonly read: number } {
  if (depth > deepest) return { octets: undefined, read: content.length };
  const segments: Buffer[] = [];
  let offset = 0;
  while (offset < content.length) {
    const element = elementAt(content, offset);
    if (element === undefined) return { octets: Buffer.concat(segments), read: content.length };
    const { tag, isConstructed, start, end } = element;
    if (length === 'indefinite' && tag === 0 && end === start)
      return { octets: Buffer.concat(segments), read: end };
    const inner = content.subarray(start, end);
    const part = isConstructed
      ? joined(inner, lengthOf(element), depth + 1)
      : { octets: inner, read: inner.length };
    if (part.octets === undefined) return { octets: undefined, read: content.length };
    segments.push(part.octets);
    offset = end ?? start + part.read;
  }
  return { octets: Buffer.concat(segments), read: content.length };
}

function lengthOf({ end }: Element): 'whole' | 'indefinite' {
  return end === undefined ? 'indefinite' : 'whole';
}

function numberIn(content: Buffer): number {
  return content.reduce((number, byte) => number * 256 + byte, 0);
}

/**
 * The element at the offset, or undefined where there is none. A length that leads beyond the bytes is cut to them, and
 * may have zeros in front. Of tags above 30 only the first byte is told.
 */
function elementAt(bytes: Buffer, offset: number): Element | undefined {
  const tag = bytes[offset];
  if (tag === undefined) return undefined;
  let at = offset + 1;
  if ((tag & 0x1f) === 0x1f) {
    while ((bytes[at] ?? 0) >= 0x80) at += 1;
    at += 1;
  }
  const first = bytes[at];
  if (first === undefined) return undefined;
  const start = at + 1;
  const isConstructed = (tag & 0x20) !== 0;
  if (first === 0x80) return { tag, isConstructed, start, end: undefined };
  if (first < 0x80) return { tag, isConstructed, start, end: Math.min(start + first, bytes.length) };
  const digits = bytes.subarray(start, start + first - 0x80);
  if (digits.length < first - 0x80) return undefined;
  const behind = start + digits.length;
  return { tag, isConstructed, start: behind, end: Math.min(behind + numberIn(digits), bytes.length) };
}
