/**
 * Addresses that belong to the machine itself or its surroundings, in every form that leads to them, and the settings that
 * allow some of them.
 */
import { type IpAddress, type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from './ip-network.ts';

/** An address or network of an `--allow-outbound` setting. */
export type AllowedOutbound = {
  readonly network: IpNetwork;
  /** Every port where undefined. */
  readonly port: number | undefined;
};

/** The rule in words, for messages. */
export const allowedOutboundRule =
  'addresses and networks, each with an optional port: 127.0.0.1:8443, [::1]:53 or 127.0.0.0/8';

const nets = (...texts: readonly string[]): readonly IpNetwork[] =>
  texts.map((text) => {
    const network = parseIpNetwork(text);
    if (network === undefined) throw new Error(`${text} is not a network`);
    return network;
  });

/** What is refused, by what messages call it. The first that fits counts. */
const refused: readonly (readonly [kind: string, networks: readonly IpNetwork[]])[] = [
  [
    "a cloud's metadata service",
    nets(
      ...['169.254.169.254', '169.254.170.2', '100.100.100.200', '168.63.129.16', '192.0.0.192'],
      ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254', 'fd00:42::42'],
    ),
  ],
  ['a loopback address', nets('127.0.0.0/8', '::1')],
  ['a link-local address', nets('169.254.0.0/16', 'fe80::/10')],
  ['a multicast address', nets('224.0.0.0/4', 'ff00::/8')],
  // Linux connects to itself where the address is 0.0.0.0 or ::.
  ['the unspecified address', nets('0.0.0.0/8', '::')],
  ['a reserved address', nets('240.0.0.0/4')],
];

type Words = readonly number[];

const last = (words: Words): Words => words.slice(6);

/** IPv6 networks whose addresses carry an IPv4 address that gateways pass packets on to, and where it is in them. */
const carriers: readonly (readonly [networks: readonly IpNetwork[], read: (words: Words) => Words])[] = [
  // IPv4-compatible (RFC 4291), IPv4-translated (RFC 2765) and NAT64 (RFC 6052).
  [nets('::/96', '::ffff:0:0:0/96', '64:ff9b::/96'), last],
  // NAT64 of one's own (RFC 8215): at the end, or behind a prefix of 48 bits and around the octet that RFC 6052 keeps free.
  [
    nets('64:ff9b:1::/48'),
    (words) => (last(words).some((word) => word !== 0) ? last(words) : behind48(words)),
  ],
  [nets('64:ff9b:1::/48'), behind48],
  // 6to4 (RFC 3056).
  [nets('2002::/16'), (words) => words.slice(1, 3)],
  // Teredo (RFC 4380): the server, and the client with its bits turned over.
  [nets('2001::/32'), (words) => words.slice(2, 4)],
  [nets('2001::/32'), (words) => last(words).map((word) => word ^ 0xffff)],
];

function behind48([, , , a = 0, b = 0, c = 0]: Words): Words {
  return [a, ((b & 0xff) << 8) | (c >> 8)];
}

/**
 * Why the vault does not connect to the address, as a noun with its article; undefined where it does. `text` is an
 * address as the system writes it, which may have a zone (`%eth0`).
 */
export function refusalOf(
  text: string,
  port: number,
  allowed: readonly AllowedOutbound[],
): string | undefined {
  const address = parseIpAddress(withoutZone(text));
  if (address === undefined) return 'not an IP address';
  const isAllowed = allowed.some(
    (one) => (one.port === undefined || one.port === port) && isInside(address, [one.network]),
  );
  return isAllowed ? undefined : kindOf(address);
}

/** One part of the setting, or undefined where it is none. */
export function parseAllowedOutbound(text: string): AllowedOutbound | undefined {
  const whole = parseIpNetwork(text);
  if (whole !== undefined) return { network: whole, port: undefined };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const network = parseIpNetwork(bracketed ?? plain ?? '');
  const port = digits === undefined ? undefined : Number(digits);
  if (network === undefined || (port ?? 0) > 65_535) return undefined;
  return { network, port };
}

/** The setting that allows exactly this. */
export function allowanceFor(address: string, port: number): string {
  const plain = withoutZone(address);
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
}

function kindOf(address: IpAddress): string | undefined {
  const found = refused.find(([, networks]) => isInside(address, networks));
  if (found !== undefined || !('parts' in address.parsed)) return found?.[0];
  const words = address.parsed.parts;
  for (const [networks, read] of carriers) {
    if (!isInside(address, networks)) continue;
    const kind = kindOf(fourOf(read(words)));
    if (kind !== undefined) return kind;
  }
  return undefined;
}

function fourOf(words: Words): IpAddress {
  const text = words.map((word) => `${word >> 8}.${word & 0xff}`).join('.');
  const address = parseIpAddress(text);
  if (address === undefined) throw new Error(`${text} is not an IPv4 address`);
  return address;
}

/** An address without the zone that may follow it: `fe80::1%eth0` (RFC 4007 §11). */
function withoutZone(address: string): string {
  const at = address.indexOf('%');
  return at < 0 ? address : address.slice(0, at);
}
