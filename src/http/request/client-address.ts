/**
 * Determines client and scheme behind proxies: a pure function of the peer address and of the headers of trusted
 * proxies. Headers from others are ignored.
 */
import { type IpNetwork, isInside, parseIpAddress } from '../../net/ip-network.ts';
import { forwardedElements } from './forwarded-header.ts';

export type Scheme = 'http' | 'https';

/** The peer address, and these headers with their lines joined with commas. */
export type RequestOrigin = {
  readonly peer: string | undefined;
  readonly forwardedFor?: string | undefined;
  readonly forwarded?: string | undefined;
  readonly forwardedProto?: string | undefined;
};

export type Client = {
  readonly ip: string | undefined;
  /** The scheme of the request to the outermost trusted proxy; undefined if not reported. */
  readonly scheme: Scheme | undefined;
};

/** One hop toward the client: the client that a proxy reports, if any. */
type Step = { readonly address: string | undefined; readonly scheme: string | undefined };

/** The result for one header: the client, and the hops, nearest first. */
type Walk = { readonly ip: string; readonly steps: readonly Step[] };

/**
 * The client of a request. Starting at the peer, each trusted proxy is believed about its client, until an address is
 * not trusted or a proxy names none (`unknown`, `_hidden`, invalid text): the last known address is that of the client.
 *
 * A proxy writes one of the two headers and may pass the other on unchanged. If both are present, they must lead to the
 * same client; otherwise the result is undefined.
 */
export function clientOf(arrival: RequestOrigin, trusted: readonly IpNetwork[]): Client | undefined {
  const peer = parseIpAddress(arrival.peer?.split('%', 1)[0] ?? '');
  if (peer === undefined) return { ip: arrival.peer, scheme: undefined };
  if (!isInside(peer, trusted)) return { ip: peer.text, scheme: undefined };
  const usual = walk(peer.text, forwardedForSteps(arrival.forwardedFor), trusted);
  const standard = walk(peer.text, standardSteps(arrival.forwarded), trusted);
  const { ip, steps } = usual.steps.length > 0 ? usual : standard;
  if (standard.steps.length > 0 && standard.ip !== ip) return undefined;
  const schemes = listed(arrival.forwardedProto);
  // One value per proxy, or a single one that the proxies pass on; earlier values are not trusted.
  const said = schemes.at(-Math.max(1, steps.length)) ?? schemes[0] ?? standard.steps.at(-1)?.scheme;
  return { ip, scheme: readScheme(said) };
}

function walk(peer: string, steps: Iterable<Step>, trusted: readonly IpNetwork[]): Walk {
  let ip = peer;
  const taken: Step[] = [];
  for (const step of steps) {
    taken.push(step);
    const address = parseNode(step.address);
    if (address === undefined) break;
    ip = address.text;
    if (!isInside(address, trusted)) break;
  }
  return { ip, steps: taken };
}

function forwardedForSteps(header: string | undefined): Step[] {
  return listed(header)
    .map((address) => ({ address, scheme: undefined }))
    .reverse();
}

function standardSteps(header: string | undefined): Iterable<Step> {
  return header === undefined ? [] : stepsIn(header);
}

function* stepsIn(header: string): Generator<Step> {
  for (const element of forwardedElements(header)) {
    yield { address: element?.for, scheme: element?.proto };
  }
}

/** Elements between commas; empty ones do not count (RFC 9110 §5.6.1.2). */
function listed(header = ''): string[] {
  if (!/[\s,]/.test(header)) return header === '' ? [] : [header];
  return header
    .split(',')
    .map((element) => element.trim())
    .filter((element) => element !== '');
}

/** An address as proxies write it: with or without port, brackets for IPv6, or quotation marks. */
function parseNode(written = '') {
  return parseIpAddress(written) ?? parseAdorned(written);
}

function parseAdorned(written: string) {
  const text = /^"(.*)"$/.exec(written)?.[1] ?? written;
  const bracketed = /^\[([^\]]*)\](?::[\w.-]{1,32})?$/.exec(text)?.[1];
  if (bracketed !== undefined) return bracketed.includes(':') ? parseIpAddress(bracketed) : undefined;
  return parseIpAddress(/^([0-9.]+):[\w.-]{1,32}$/.exec(text)?.[1] ?? text);
}

function readScheme(text: string | undefined): Scheme | undefined {
  const lower = text?.toLowerCase();
  return lower === 'http' || lower === 'https' ? lower : undefined;
}
