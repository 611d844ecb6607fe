/** Domain names: what is above and under them, and how they travel (RFC 1035 §3.1). */
import { DnsProviderError } from '../dns-provider.ts';

/** The name as the vault writes it: in lower case and without a dot at its end. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** The name and all above it, without the root: `a.b.c` gives `a.b.c`, `b.c`, `c`. */
export function upwards(name: string): string[] {
  const labels = plainName(name).split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

/** Whether `name` is the zone or under it, by whole labels. The empty zone is the root, which everything is under. */
export function isWithin(name: string, zone: string): boolean {
  const [inner, outer] = [plainName(name), plainName(zone)];
  return outer === '' || inner === outer || inner.endsWith(`.${outer}`);
}

/** The name uncompressed and in lower case, as TSIG wants it too. Throws DnsProviderError where it is no name. */
export function encodeName(name: string): Buffer {
  const plain = plainName(name);
  const labels = plain === '' ? [] : plain.split('.');
  const isName = labels.every((label) => /^[!-~]{1,63}$/.test(label)) && plain.length <= 253;
  if (!isName) throw new DnsProviderError(`${JSON.stringify(name)} is not a domain name`);
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  return Buffer.concat([...parts, Buffer.from([0])]);
}

/**
 * The name at `offset` of a message, in lower case, and where the next thing begins. Pointers (RFC 1035 §4.1.4) may only
 * lead backwards, so that none leads in circles. Throws RangeError where the bytes are no name.
 */
export function readName(message: Buffer, offset: number): { readonly name: string; readonly next: number } {
  const labels: string[] = [];
  let next: number | undefined;
  let size = 0;
  for (let at = offset, limit = offset; ; ) {
    const length = message.readUInt8(at);
    if (length === 0) {
      return { name: labels.join('.'), next: next ?? at + 1 };
    }
    if (length >= 0xc0) {
      next ??= at + 2;
      at = message.readUInt16BE(at) & 0x3fff;
      if (at >= limit) throw new RangeError('a compressed name points forward');
      limit = at;
      continue;
    }
    size += length + 1;
    const end = at + 1 + length;
    if (length > 63 || size > 254 || end > message.length) throw new RangeError('a label is too long');
    // A dot inside of a label must not look like a border.
    labels.push(
      message
        .toString('latin1', at + 1, end)
        .toLowerCase()
        .replaceAll('.', '\\.'),
    );
    at = end;
  }
}
