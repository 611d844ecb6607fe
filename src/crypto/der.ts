/** Writes DER (X.690): the few types of PKCS#12 files and CRLs. */

/** A tag in front of a length and the content, which may be given in parts. */
export function tagged(tag: number, ...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, { length: bytes }) => sum + bytes, 0);
  // One byte below 128, otherwise the number of length bytes and the length (X.690 §8.1.3).
  const size = bytesOf(length);
  const head = length < 0x80 ? [tag] : [tag, 0x80 + size.length];
  return Buffer.concat([Buffer.from(head), size, ...parts]);
}

/** A number in as few bytes as possible, most significant first. */
function bytesOf(value: number): Buffer {
  return fromHex(value.toString(16));
}

/** The bytes of a hexadecimal number, which may have an odd number of digits. */
export function fromHex(digits: string): Buffer {
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}

export function sequence(...members: readonly Buffer[]): Buffer {
  return tagged(0x30, ...members);
}

/** DER sorts the members of a set by their encoding (X.690 §11.6). */
export function setOf(...members: readonly Buffer[]): Buffer {
  return tagged(0x31, ...members.toSorted(Buffer.compare));
}

/** `[number] EXPLICIT`, around another value. */
export function explicit(number: number, value: Buffer): Buffer {
  return tagged(0xa0 + number, value);
}

/** `[number] IMPLICIT` in front of the content of a primitive type. */
export function implicit(number: number, content: Buffer): Buffer {
  return tagged(0x80 + number, content);
}

/** A number from 0 to 2^53, or the bytes of a positive one. A leading zero byte keeps it positive. */
export function integer(value: number | Buffer): Buffer {
  const bytes = typeof value === 'number' ? bytesOf(value) : value;
  const first = bytes.findIndex((byte) => byte !== 0);
  const shortest = first === -1 ? Buffer.of(0) : bytes.subarray(first);
  return shortest.readUInt8(0) < 0x80 ? tagged(0x02, shortest) : tagged(0x02, Buffer.of(0), shortest);
}

export function octetString(content: Buffer): Buffer {
  return tagged(0x04, content);
}

export const nothing = tagged(0x05);

/** A text in UTF-16, most significant byte first. */
export function bmpString(text: string): Buffer {
  return tagged(0x1e, utf16BigEndian(text));
}

/** The bytes of a text in UTF-16, most significant byte first. */
export function utf16BigEndian(text: string): Buffer {
  return Buffer.from(text, 'utf16le').swap16();
}

/**
 * An object identifier in dotted notation. Each arc has seven bits in a byte, the highest bit set in all but the last.
 */
export function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const bytes = [first * 40 + second, ...rest].flatMap((arc) => {
    const septets = [arc % 128];
    for (let left = Math.floor(arc / 128); left > 0; left = Math.floor(left / 128)) {
      septets.unshift(0x80 + (left % 128));
    }
    return septets;
  });
  return tagged(0x06, Buffer.from(bytes));
}
