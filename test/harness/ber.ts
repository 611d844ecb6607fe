/** Writes BER elements (X.690) in every valid form, for tests of hostile files. */

/** The encoding of lengths: shortest, with leading zeros, or indefinite with an end mark. */
export type LengthForm = 'short' | 'padded' | 'indefinite';

/** An element with this tag; an indefinite length is for constructed ones only. */
export function ber(tag: number, content: Buffer | readonly Buffer[], form: LengthForm = 'short'): Buffer {
  const inner = Buffer.isBuffer(content) ? content : Buffer.concat(content);
  if (form === 'indefinite') return Buffer.concat([Buffer.from([tag, 0x80]), inner, Buffer.alloc(2)]);
  return Buffer.concat([Buffer.from([tag]), lengthBytes(inner.length, form), inner]);
}

/** An INTEGER that is not negative. */
export function berInteger(value: number): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return ber(0x02, (bytes[0] ?? 0) >= 0x80 ? [Buffer.alloc(1), bytes] : bytes);
}

/** An OCTET STRING, primitive or split at these offsets into a constructed one. */
export function berOctets(content: Buffer, cuts: readonly number[] = [], form: LengthForm = 'short'): Buffer {
  if (cuts.length === 0) return ber(0x04, content, form === 'indefinite' ? 'short' : form);
  const places = [
    0,
    ...cuts.map((cut) => cut % (content.length + 1)).toSorted((a, b) => a - b),
    content.length,
  ];
  return ber(
    0x24,
    places.slice(1).map((end, index) => ber(0x04, content.subarray(places[index], end))),
    form,
  );
}

function lengthBytes(length: number, form: LengthForm): Buffer {
  if (form === 'short' && length < 0x80) return Buffer.from([length]);
  const digits = Buffer.alloc(4);
  digits.writeUInt32BE(length);
  if (form === 'padded') return Buffer.concat([Buffer.from([0x80 + 9]), Buffer.alloc(5), digits]);
  const shortest = digits.subarray(digits.findIndex((byte) => byte !== 0));
  return Buffer.concat([Buffer.from([0x80 + shortest.length]), shortest]);
}
