/**
 * IP addresses and networks. An address has one form however it was written; an IPv4 address mapped into IPv6 counts as
 * that IPv4 address and belongs to IPv4 networks only.
 */
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';

const { IPv4, IPv6 } = ipaddr;

export type IpAddress = {
  readonly family: 4 | 6;
  /** Four or sixteen. */
  readonly bytes: readonly number[];
  /** In canonical form (RFC 5952). */
  readonly text: string;
};

/** A network in CIDR notation. */
export type IpNetwork = {
  readonly family: 4 | 6;
  /** Of the first address. */
  readonly bytes: readonly number[];
  /** Prefix length in bits. */
  readonly length: number;
  /** As `10.0.0.0/8`; a single address without a length. */
  readonly text: string;
};

/** The rule in words, for messages. */
export const ipNetworkRule =
  'a network is an IP address such as 192.0.2.7, or a network with a prefix length such as 192.0.2.0/24 or 2001:db8::/32';

/** Every network matches it, and "*" for any; as JSON Schema says it, for generated clients. */
export const ipNetworkPattern = '^\\s*(\\*|[0-9A-Fa-f.:]{2,45}(/\\d{1,3})?)\\s*$';

/**
 * The address, or undefined where the text is not one. A zone (`%eth0`) has a meaning on one host only and is refused.
 */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, bytes: bytesOfIPv4(text), text };
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const parsed = IPv6.parse(withHexTail(text));
  return parsed.isIPv4MappedAddress() ? addressOf(parsed.toIPv4Address()) : addressOf(parsed);
}

/**
 * The network, or undefined where the text is not one. A network with host bits set is refused: `10.1.2.3/8` could mean
 * one host or all of its sixteen million neighbors.
 */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [, written = '', after] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = parseIpAddress(written);
  if (address === undefined) return undefined;
  const size = address.family === 4 ? 32 : 128;
  // A length written for the mapped form counts from the beginning of the IPv6 address.
  const mappedBits = address.family === 4 && written.includes(':') ? 96 : 0;
  const length = after === undefined ? size : Number(after) - mappedBits;
  if (length < 0 || length > size) return undefined;
  if (firstOf(address, length).text !== address.text) return undefined;
  const { family, bytes } = address;
  return { family, bytes, length, text: length === size ? address.text : `${address.text}/${length}` };
}

/** Whether one of the networks contains the address. */
export function isInside(address: IpAddress, networks: readonly IpNetwork[]): boolean {
  return networks.some(
    ({ family, bytes, length }) => family === address.family && sharesPrefix(address.bytes, bytes, length),
  );
}

/** Whether all addresses of the network belong to one of the others. */
export function isNetworkInside({ family, bytes, length }: IpNetwork, others: readonly IpNetwork[]): boolean {
  return others.some(
    (one) => one.family === family && one.length <= length && sharesPrefix(bytes, one.bytes, one.length),
  );
}

/** How many addresses the network has. */
export function sizeOf({ family, length }: IpNetwork): number {
  return 2 ** ((family === 4 ? 32 : 128) - length);
}

/** The address of the network with this number, from 0 to less than 2³². */
export function addressIn({ family, bytes }: IpNetwork, index: number): string {
  const own = [...bytes];
  for (let at = own.length - 1, left = index; left > 0 && at >= 0; at -= 1) {
    own[at] = (own[at] ?? 0) | (left & 0xff);
    left = Math.floor(left / 256);
  }
  return addressOf(family === 4 ? new IPv4(own) : new IPv6(own)).text;
}

function sharesPrefix(one: readonly number[], other: readonly number[], bits: number): boolean {
  return other.every((byte, at) => ((byte ^ (one[at] ?? 0)) & maskAt(at, bits)) === 0);
}

/** The bits of the byte at this place that belong to a prefix of `bits` bits. */
function maskAt(at: number, bits: number): number {
  return 0xff & (0xff << Math.min(8, Math.max(0, 8 * at + 8 - bits)));
}

/**
 * The key for counts per client: an IPv4 address itself, the /64 of an IPv6 address, since a client usually holds all
 * of it. Text that is not an address is its own key.
 */
export function neighborhood(text: string): string {
  if (isIPv4(text)) return text;
  const address = parseIpAddress(text.split('%', 1)[0] ?? '');
  if (address === undefined || address.family === 4) return address?.text ?? text;
  return `${firstOf(address, 64).text}/64`;
}

/**
 * Roughly the provider's network of an address: its /16 for IPv4, its /32 for IPv6. Text that is not an address is its
 * own key.
 */
export function wideNetwork(text: string): string {
  const address = parseIpAddress(text.split('%', 1)[0] ?? '');
  return address === undefined ? text : firstOf(address, address.family === 4 ? 16 : 32).text;
}

/** `::192.0.2.7` as `::c000:207`: ipaddr.js would take it for the mapped address `::ffff:192.0.2.7`. */
function withHexTail(text: string): string {
  const at = text.lastIndexOf(':') + 1;
  const tail = text.slice(at);
  if (!tail.includes('.')) return text;
  const [a = 0, b = 0, c = 0, d = 0] = tail.split('.').map(Number);
  return `${text.slice(0, at)}${(256 * a + b).toString(16)}:${(256 * c + d).toString(16)}`;
}

/** The first address of the network of `length` bits that contains the address. */
function firstOf({ family, bytes: own }: IpAddress, length: number): IpAddress {
  const bytes = own.map((byte, at) => byte & maskAt(at, length));
  return addressOf(family === 4 ? new IPv4(bytes) : new IPv6(bytes));
}

function addressOf(parsed: ipaddr.IPv4 | ipaddr.IPv6): IpAddress {
  const bytes = parsed.toByteArray();
  return parsed instanceof IPv4
    ? { family: 4, bytes, text: parsed.toString() }
    : { family: 6, bytes, text: parsed.toRFC5952String() };
}

/** Behind a proxy each request brings two addresses, and reading them with ipaddr.js took 3 % of it. */
function bytesOfIPv4(text: string): number[] {
  const bytes = [0, 0, 0, 0];
  let at = 0;
  for (let index = 0; index < text.length; index += 1) {
    const digit = text.charCodeAt(index) - zero;
    if (digit < 0) at += 1;
    else bytes[at] = 10 * (bytes[at] ?? 0) + digit;
  }
  return bytes;
}

const zero = '0'.charCodeAt(0);
