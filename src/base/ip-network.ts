/**
 * IP addresses and networks as numbers, so that one address is one address however it is written: an IPv4 address that
 * is mapped into IPv6 is that IPv4 address, and belongs to IPv4 networks alone.
 */
import { isIPv4, isIPv6 } from 'node:net';

export type IpAddress = {
  readonly family: 4 | 6;
  /** Two or eight numbers of 16 bits. */
  readonly words: readonly number[];
  /** The one way in which it is written (RFC 5952). */
  readonly text: string;
};

export type IpNetwork = {
  readonly family: 4 | 6;
  readonly words: readonly number[];
  /** How many bits from the beginning are the network's. */
  readonly length: number;
  /** As `10.0.0.0/8`; a single address stands without a length. */
  readonly text: string;
};

/** The rule in words, for messages. */
export const ipNetworkRule =
  'a network is an IP address such as 192.0.2.7, or its beginning with a length such as 192.0.2.0/24 or 2001:db8::/32';

/** The address, or undefined where the text is none. A zone (`%eth0`) means something on one host only and is refused. */
export function parseIpAddress(text: string): IpAddress | undefined {
  if (isIPv4(text)) return { family: 4, words: wordsOfIPv4(text), text };
  if (!isIPv6(text) || text.includes('%')) return undefined;
  return ofIPv6(wordsOfIPv6(text));
}

/**
 * The network, or undefined where the text is none. One whose free bits are not zero is refused: `10.1.2.3/8` could mean
 * a host or all of its sixteen million neighbours.
 */
export function parseIpNetwork(text: string): IpNetwork | undefined {
  const [, written = '', after] = /^([^/]*)(?:\/(0|[1-9]\d{0,2}))?$/.exec(text) ?? [];
  const address = parseIpAddress(written);
  if (address === undefined) return undefined;
  const { family, words } = address;
  const size = 16 * words.length;
  // A length that was written for the mapped form counts from the beginning of the IPv6 address.
  const length =
    after === undefined ? size : Number(after) - (family === 4 && written.includes(':') ? 96 : 0);
  if (length < 0 || length > size) return undefined;
  if (words.some((word, index) => (word & ~maskOf(index, length)) !== 0)) return undefined;
  return { family, words, length, text: length === size ? address.text : `${address.text}/${length}` };
}

/** Whether one of the networks has the address. */
export function isInside(address: IpAddress, networks: readonly IpNetwork[]): boolean {
  return networks.some((network) => has(network, address));
}

/**
 * Whom a count by address is about: of an IPv6 address the first 64 bits, because whoever has one has all that begin so.
 * What is no address is itself.
 */
export function neighborhood(text: string): string {
  if (isIPv4(text)) return text;
  const address = parseIpAddress(text.split('%', 1)[0] ?? '');
  if (address === undefined || address.family === 4) return address?.text ?? text;
  return `${ofIPv6([...address.words.slice(0, 4), 0, 0, 0, 0]).text}/64`;
}

/** The provider's network that an address is in, roughly: the first 16 bits of IPv4, 32 of IPv6. What is no address is itself. */
export function wideNetwork(text: string): string {
  const address = parseIpAddress(text.split('%', 1)[0] ?? '');
  if (address === undefined) return text;
  return address.words.slice(0, address.family === 4 ? 1 : 2).join(' ');
}

function has({ family, words, length }: IpNetwork, address: IpAddress): boolean {
  if (family !== address.family) return false;
  return words.every((word, index) => ((word ^ (address.words[index] ?? 0)) & maskOf(index, length)) === 0);
}

/** Those of the 16 bits of a word that are among the first `length` of all. */
function maskOf(index: number, length: number): number {
  const bits = length - 16 * index;
  if (bits >= 16) return 0xffff;
  return bits <= 0 ? 0 : (0xffff << (16 - bits)) & 0xffff;
}

/** Read in one go: behind a proxy, each request brings two addresses. */
function wordsOfIPv4(text: string): number[] {
  let all = 0;
  let byte = 0;
  for (let at = 0; at < text.length; at += 1) {
    const digit = text.charCodeAt(at) - zero;
    if (digit >= 0) byte = 10 * byte + digit;
    else {
      all = 256 * all + byte;
      byte = 0;
    }
  }
  all = 256 * all + byte;
  return [Math.floor(all / 0x10000), all % 0x10000];
}

const zero = '0'.charCodeAt(0);

function wordsOfIPv6(text: string): number[] {
  const [head = '', tail] = text.split('::');
  const first = wordsOfGroups(head);
  if (tail === undefined) return first;
  const last = wordsOfGroups(tail);
  return [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last];
}

function wordsOfGroups(text: string): number[] {
  if (text === '') return [];
  return text
    .split(':')
    .flatMap((group) => (group.includes('.') ? wordsOfIPv4(group) : Number.parseInt(group, 16)));
}

function ofIPv6(words: readonly number[]): IpAddress {
  const isMapped = words[5] === 0xffff && words.every((word, index) => word === 0 || index >= 5);
  if (!isMapped) return { family: 6, words, text: textOfIPv6(words) };
  const four = words.slice(6);
  return { family: 4, words: four, text: four.map((word) => `${word >> 8}.${word & 0xff}`).join('.') };
}

/** The first of the longest runs of zeros, of two groups at least, becomes `::` (RFC 5952 §4.2). */
function textOfIPv6(words: readonly number[]): string {
  let [start, length] = [0, 1];
  for (let index = 0; index < 8; index += 1) {
    let run = 0;
    while (words[index + run] === 0) run += 1;
    if (run > length) [start, length] = [index, run];
    index += run;
  }
  const hex = words.map((word) => word.toString(16));
  if (length < 2) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}
