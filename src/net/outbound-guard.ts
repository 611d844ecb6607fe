/**
 * The guard of everything that leaves the machine: no connection to the machine itself or its surroundings, unless a
 * setting allows it. It decides on the very address that is connected to, so that a name that changes in between gains nothing.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { OperatorError } from '../base/operator-error.ts';
import { type AllowedOutbound, allowanceFor, refusalOf } from './outbound-addresses.ts';

/** What `connect` of node:net and node:tls and `request` of node:http take. */
export type GuardedTarget = { readonly host: string; readonly port: number; readonly lookup: LookupFunction };

export type OutboundGuard = {
  /**
   * The way to a host, which may be a name or an address without brackets. Throws OutboundRefusal for an address; the
   * lookup fails with one for a name.
   */
  readonly target: (host: string, port: number) => GuardedTarget;
};

/** As `lookup` of node:dns, asked for all addresses. */
export type LookupAll = (
  hostname: string,
  options: { readonly all: true; readonly family?: number | 'IPv4' | 'IPv6' | undefined },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** Nothing was connected to. The sentence names the address and the setting that would allow it. */
export class OutboundRefusal extends OperatorError {
  constructor(host: string, { address, port, kind }: { address: string; port: number; kind: string }) {
    const what = host === address ? `${host} is ${kind}` : `${host} resolves to ${address}, ${kind}`;
    const allowance = allowanceFor(address, port);
    super(
      `${what}; allow it with --allow-outbound ${allowance} (in vault.yaml: allow_outbound: "${allowance}")`,
    );
    this.name = 'OutboundRefusal';
  }
}

/** RFC 6761 §6.3: these names always mean this machine. */
const loopbacks: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** A guard that lets through what is allowed; `resolve` is what the system knows about names. */
export function outboundGuard(
  allowed: readonly AllowedOutbound[] = [],
  resolve: LookupAll = systemLookup,
): OutboundGuard {
  /** The addresses that may be connected to. Throws OutboundRefusal where there is none. */
  const permitted = (host: string, port: number, addresses: readonly LookupAddress[]): LookupAddress[] => {
    const judged = addresses.map((one) => ({ ...one, kind: refusalOf(one.address, port, allowed) }));
    const open = judged.filter(({ kind }) => kind === undefined);
    const [first] = judged;
    if (open.length > 0 || first?.kind === undefined) return open;
    throw new OutboundRefusal(host, { ...first, port, kind: first.kind });
  };
  const lookup =
    (port: number): LookupFunction =>
    (hostname, options, callback) => {
      const give = (error: NodeJS.ErrnoException | null, addresses: readonly LookupAddress[]) => {
        let open: LookupAddress[];
        try {
          if (error !== null) throw error;
          open = permitted(hostname, port, addresses);
        } catch (refusal) {
          callback(refusal as NodeJS.ErrnoException, '', 0);
          return;
        }
        if (options.all === true) callback(null, open);
        else callback(null, open[0]?.address ?? '', open[0]?.family ?? 0);
      };
      if (!isLocalhost(hostname)) return resolve(hostname, { ...options, all: true }, give);
      const { family = 0 } = options;
      const asked = Number(String(family).replace('IPv', ''));
      queueMicrotask(() =>
        give(
          null,
          loopbacks.filter((one) => asked === 0 || one.family === asked),
        ),
      );
    };
  return {
    target: (host, port) => {
      const family = isIP(host);
      // A proxy would resolve these names itself.
      const known = isLocalhost(host) ? loopbacks : family === 0 ? [] : [{ address: host, family }];
      permitted(host, port, known);
      return { host, port, lookup: lookup(port) };
    },
  };
}

/** For an address that the operator names on the command line or in a setting. */
export const unguarded: OutboundGuard = { target: (host, port) => ({ host, port, lookup: systemLookup }) };

/** Whether the name is this machine's by definition. */
export function isLocalhost(host: string): boolean {
  return /^(?:.+\.)?localhost\.?$/i.test(host);
}
