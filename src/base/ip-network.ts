/**
 * IP addresses and networks as numbers, so that one address is one address however it is written: an IPv4 address that
 * is mapped into IPv6 is that IPv4 address, and belongs to IPv4 networks alone.
 */
import { isIPv4, isIPv6 } from 'node:net';

export type IpAddress = {
  readonly family: 4 | 6;
  readonly bits: bigint;
  /** The one way in which it is written (RFC 5952). */
  readonly text: string;
};

export type IpNetwork = {
  readonly family: 4 | 6;
  readonly start: bigint;
  /** How many of the last bits are free. */
  readonly free: bigint;
  /** As `10.0.0.0/8`; a single address stands without a length. */
  readonly text: string;
};

/** The rule in words, for messages. */
export const ipNetworkRule =
  'a network is an IP address such as 192.0.2.7, or its beginning with a length such as 192.0.2.0/24 or 2001:db8::/32';

/** The address, or undefined where the text is none. A zone (`%eth0`) means something on one host only and is refused. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, bits: bitsOfIPv4(text), text };
  if (!isIPv6(text) || text.includes('%')) return undefined;
  return ofIPv6(bitsOfIPv6(text));
}

/**
 * The network, or undefined where the text is none. One whose free bits are not zero is refused: `10.1.2.3/8` could mean
 * a host or all of its ten million neighbours.
 */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [, written = '', length] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = parseIpAddress(written);
  if (address === undefined) return undefined;
  const size = address.family === 4 ? 32 : 128;
  // A length that was written for the mapped form counts from the beginning of the IPv6 address.
  const given = length === undefined ? size : Number(length) - (isMapped(written) ? 96 : 0);
  if (given < 0 || given > size) return undefined;
  const free = BigInt(size - given);
  if ((address.bits >> free) << free !== address.bits) return undefined;
  return {
    family: address.family,
    start: address.bits,
    free,
    text: given === size ? address.text : `${address.text}/${given}`,
  };
}

/** Whether one of the networks has the address. */
export function isInside({ family, bits }: IpAddress, networks: readonly IpNetwork[]): boolean {
  return networks.some(
    (network) => network.family === family && bits >> network.free === network.start >> network.free,
  );
}

/**
 * Whom a count by address is about: of an IPv6 address the first 64 bits, because whoever has one has all that begin so.
 * What is no address is itself.
 */
export function neighbourhood(text: string): string {
  const address = parseIpAddress(text.split('%', 1)[0] ?? '');
  if (address === undefined || address.family === 4) return address?.text ?? text;
  return `${ofIPv6((address.bits >> 64n) << 64n).text}/64`;
}

function isMapped(written: string): boolean {
  return written.includes(':') && bitsOfIPv6(written) >> 32n === 0xffffn;
}

function bitsOfIPv4(text: string): bigint {
  return BigInt(text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0));
}

function bitsOfIPv6(text: string): bigint {
  const dotted = /[^:]*\.[^:]*$/.exec(text)?.[0];
  const hex = dotted === undefined ? text : text.slice(0, -dotted.length) + groups(bitsOfIPv4(dotted), 2);
  const [head = '', tail = ''] = hex.split('::');
  const [first, last] = [head, tail].map((half) => (half === '' ? [] : half.split(':'))) as [
    string[],
    string[],
  ];
  const zeros = Array<string>(8 - first.length - last.length).fill('0');
  return [...first, ...zeros, ...last].reduce((sum, group) => (sum << 16n) | BigInt(`0x${group}`), 0n);
}

function ofIPv6(bits: bigint): IpAddress {
  if (bits >> 32n !== 0xffffn) return { family: 6, bits, text: shortest(groups(bits, 8)) };
  const four = bits & 0xffff_ffffn;
  const text = [24n, 16n, 8n, 0n].map((shift) => (four >> shift) & 0xffn).join('.');
  return { family: 4, bits: four, text };
}

function groups(bits: bigint, count: number): string {
  return Array.from({ length: count }, (_, index) =>
    ((bits >> BigInt(16 * (count - 1 - index))) & 0xffffn).toString(16),
  ).join(':');
}

/** The first of the longest runs of zeros, of two groups at least, becomes `::` (RFC 5952 §4.2). */
function shortest(text: string): string {
  const runs = [...text.matchAll(/(?<![^:])0(?::0)+(?![^:])/g)];
  const longest = runs.reduce((best, [run]) => (run.length > best.length ? run : best), '');
  if (longest === '') return text;
  const at = runs.find(([run]) => run === longest)?.index ?? 0;
  return `${text.slice(0, at).replace(/:$/, '')}::${text.slice(at + longest.length).replace(/^:/, '')}`;
}
