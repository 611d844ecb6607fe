/** Domain names: parents and children, and the wire format (RFC 1035 §3.1). */
import { DnsProviderError } from '../dns-provider.ts';

/** The name in the form the vault uses: lower case, without a trailing dot. */
export function plainName(name: string): string {
  return name.toLowerCase().replace(/\.$/, '');
}

/** The name and its parents, without the root: `a.b.c` gives `a.b.c`, `b.c`, `c`. */
export function upwards(name: string): string[] {
  const labels = plainName(name).split('.');
  return labels.map((_, index) => labels.slice(index).join('.'));
}

/** Whether `name` is the zone or a descendant of it. The empty zone is the root, which contains every name. */
export function isWithin(name: string, zone: string): boolean {
  const [inner, outer] = [plainName(name), plainName(zone)];
  return outer === '' || inner === outer || inner.endsWith(`.${outer}`);
}

/** The uncompressed name in lower case, as TSIG requires. Throws DnsProviderError for an invalid name. */
export function encodeName(name: string): Buffer {
  const plain = plainName(name);
  const labels = plain === '' ? [] : plain.split('.');
  const isName = labels.every((label) => /^[!-~]{1,63}$/.test(label)) && plain.length <= 253;
  if (!isName) throw new DnsProviderError(`${JSON.stringify(name)} is not a domain name`);
  const parts = labels.flatMap((label) => [Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  return Buffer.concat([...parts, Buffer.from([0])]);
}

/**
 * The name at `offset` of a message, in lower case, and the offset after it. Pointers (RFC 1035 §4.1.4) may only point
 * backward, so that they cannot loop. Throws RangeError for an invalid name.
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
    // A dot inside a label must not look like a separator.
    labels.push(
      message
        .toString('latin1', at + 1, end)
        .toLowerCase()
        .replaceAll('.', '\\.'),
    );
    at = end;
  }
}
