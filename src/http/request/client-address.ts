/**
 * Who called, and by which scheme, where proxies stand between: one pure function of the connection's peer and of what
 * the proxies that are trusted have written. What others wrote is never believed.
 */
import { type IpNetwork, isInside, parseIpAddress } from '../../net/ip-network.ts';
import { forwardedElements } from './forwarded-header.ts';

export type Scheme = 'http' | 'https';

/** The connection's other end, and these headers with all their lines joined by commas. */
export type RequestOrigin = {
  readonly peer: string | undefined;
  readonly forwardedFor?: string | undefined;
  readonly forwarded?: string | undefined;
  readonly forwardedProto?: string | undefined;
};

export type Client = {
  readonly ip: string | undefined;
  /** As the outermost trusted proxy was asked; undefined where none says it. */
  readonly scheme: Scheme | undefined;
};

/** One step back towards the client: whom a proxy was asked by, as far as it says so. */
type Step = { readonly address: string | undefined; readonly scheme: string | undefined };

/** How far a header leads: the client, and the steps that were taken, the nearest first. */
type Walk = { readonly ip: string; readonly steps: readonly Step[] };

/**
 * The client of a request. From the peer on, each trusted proxy is believed about who asked it, until somebody is not
 * trusted, or a proxy names nobody (`unknown`, `_hidden`, nonsense): the last address that is known is the client's.
 *
 * A proxy writes one of the two headers and may hand the other on as its client sent it. So where both are there they
 * must lead to the same client; where they do not, nobody knows who it is, and this is undefined.
 */
export function clientOf(arrival: RequestOrigin, trusted: readonly IpNetwork[]): Client | undefined {
  const peer = parseIpAddress(arrival.peer?.split('%', 1)[0] ?? '');
  if (peer === undefined) return { ip: arrival.peer, scheme: undefined };
  if (!isInside(peer, trusted)) return { ip: peer.text, scheme: undefined };
  const usual = walk(peer.text, usualSteps(arrival.forwardedFor), trusted);
  const standard = walk(peer.text, standardSteps(arrival.forwarded), trusted);
  const { ip, steps } = usual.steps.length > 0 ? usual : standard;
  if (standard.steps.length > 0 && standard.ip !== ip) return undefined;
  const schemes = listed(arrival.forwardedProto);
  // One value for each proxy, or one that the proxies hand on; those before were written by strangers.
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

function usualSteps(header: string | undefined): Step[] {
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

/** An address as proxies write them: with or without port, IPv6 with or without brackets, in quotation marks or not. */
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
