/**
 * Addresses of this host and its local networks, in every form that leads to them, and the `--allow-outbound` settings
 * that permit some of them.
 */
import { type IpAddress, type IpNetwork, isInside, parseIpAddress, parseIpNetwork } from './ip-network.ts';

/** An address or network of an `--allow-outbound` setting. */
export type AllowedOutbound = {
  readonly network: IpNetwork;
  /** All ports if undefined. */
  readonly port: number | undefined;
};

/** The rule in words, for error messages. */
export const allowedOutboundRule =
  'addresses and networks, each with an optional port: 127.0.0.1:8443, [::1]:53 or 127.0.0.0/8';

const nets = (...texts: readonly string[]): readonly IpNetwork[] =>
  texts.map((text) => {
    const network = parseIpNetwork(text);
    if (network === undefined) throw new Error(`${text} is not a network`);
    return network;
  });

/** Refused networks, by the noun used in messages. The first match counts. */
const refused: readonly RefusedNetworks[] = [
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
  // Linux connects to the local host for 0.0.0.0 and ::.
  ['the unspecified address', nets('0.0.0.0/8', '::')],
  ['a reserved address', nets('240.0.0.0/4')],
];

type Bytes = readonly number[];

const last = (bytes: Bytes): Bytes => bytes.slice(12);

/** IPv6 networks whose addresses embed an IPv4 address that gateways forward packets to, and where it is embedded. */
const carriers: readonly (readonly [networks: readonly IpNetwork[], read: (bytes: Bytes) => Bytes])[] = [
  // IPv4-compatible (RFC 4291), IPv4-translated (RFC 2765) and NAT64 (RFC 6052).
  [nets('::/96', '::ffff:0:0:0/96', '64:ff9b::/96'), last],
  // Local NAT64 (RFC 8215): at the end, or after a 48-bit prefix and around the octet that RFC 6052 reserves.
  [
    nets('64:ff9b:1::/48'),
    (bytes) => (last(bytes).some((byte) => byte !== 0) ? last(bytes) : behind48(bytes)),
  ],
  [nets('64:ff9b:1::/48'), behind48],
  // 6to4 (RFC 3056).
  [nets('2002::/16'), (bytes) => bytes.slice(2, 6)],
  // Teredo (RFC 4380): the server, and the client with inverted bits.
  [nets('2001::/32'), (bytes) => bytes.slice(4, 8)],
  [nets('2001::/32'), (bytes) => last(bytes).map((byte) => byte ^ 0xff)],
];

function behind48(bytes: Bytes): Bytes {
  return [...bytes.slice(6, 8), ...bytes.slice(9, 11)];
}

/** Further refused networks, and the noun for messages. */
export type RefusedNetworks = readonly [kind: string, networks: readonly IpNetwork[]];

/**
 * Why the vault does not connect to the address, as a noun with its article; undefined if it does. `text` is an address
 * as the system formats it, possibly with a zone (`%eth0`). `more` is refused like the networks above.
 */
export function refusalOf(
  text: string,
  port: number,
  allowed: readonly AllowedOutbound[],
  more: readonly RefusedNetworks[] = [],
): string | undefined {
  const address = parseIpAddress(withoutZone(text));
  if (address === undefined) return 'not an IP address';
  const isAllowed = allowed.some(
    (one) => (one.port === undefined || one.port === port) && isInside(address, [one.network]),
  );
  return isAllowed ? undefined : kindOf(address, [...refused, ...more]);
}

/** One part of the setting, or undefined if invalid. */
export function parseAllowedOutbound(text: string): AllowedOutbound | undefined {
  const whole = parseIpNetwork(text);
  if (whole !== undefined) return { network: whole, port: undefined };
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::([1-9]\d{0,4}))?$/.exec(text) ?? [];
  const network = parseIpNetwork(bracketed ?? plain ?? '');
  const port = digits === undefined ? undefined : Number(digits);
  if (network === undefined || (port ?? 0) > 65_535) return undefined;
  return { network, port };
}

/** The setting that allows exactly this address and port. */
export function allowanceFor(address: string, port: number): string {
  const plain = withoutZone(address);
  return plain.includes(':') ? `[${plain}]:${port}` : `${plain}:${port}`;
}

function kindOf(address: IpAddress, kinds: readonly RefusedNetworks[]): string | undefined {
  const found = kinds.find(([, networks]) => isInside(address, networks));
  if (found !== undefined || address.family === 4) return found?.[0];
  const { bytes } = address;
  for (const [networks, read] of carriers) {
    if (!isInside(address, networks)) continue;
    const kind = kindOf(ipv4Of(read(bytes)), kinds);
    if (kind !== undefined) return kind;
  }
  return undefined;
}

function ipv4Of(bytes: Bytes): IpAddress {
  const text = bytes.join('.');
  const address = parseIpAddress(text);
  if (address === undefined) throw new Error(`${text} is not an IPv4 address`);
  return address;
}

/** The address without its zone: `fe80::1%eth0` (RFC 4007 §11). */
function withoutZone(address: string): string {
  const at = address.indexOf('%');
  return at < 0 ? address : address.slice(0, at);
}
