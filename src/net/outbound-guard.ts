/**
 * Guards all outbound connections: none reaches this host or its local networks unless a setting allows it. The guard
 * checks the address that is connected to, so changing DNS answers cannot bypass it.
 */
import { type LookupAddress, lookup as systemLookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { OperatorError } from '../base/operator-error.ts';
import type { IpNetwork } from './ip-network.ts';
import { type AllowedOutbound, allowanceFor, refusalOf } from './outbound-addresses.ts';

/** Options of `connect` in node:net and node:tls, and of `request` in node:http. */
export type GuardedTarget = { readonly host: string; readonly port: number; readonly lookup: LookupFunction };

export type OutboundGuard = {
  /**
   * Connection options for a host, which is a name or an address without brackets. Throws OutboundRefusal for an
   * address; for a name, the lookup fails with it.
   */
  readonly target: (host: string, port: number) => GuardedTarget;
};

/** Like `lookup` of node:dns with all addresses. */
export type LookupAll = (
  hostname: string,
  options: { readonly all: true; readonly family?: number | 'IPv4' | 'IPv6' | undefined },
  callback: (error: NodeJS.ErrnoException | null, addresses: LookupAddress[]) => void,
) => void;

/** The setting of most connections. */
const allowOutbound = 'allow-outbound';

/** How a guard differs for connections that have settings of their own. */
export type GuardRules = {
  /** The setting that allows what is refused. */
  readonly setting: string;
  /** Networks that are refused, too. */
  readonly forbidden: readonly IpNetwork[];
};

/** No connection was made. The message names the address and the setting that would allow it. */
export class OutboundRefusal extends OperatorError {
  constructor(
    host: string,
    { address, port, kind }: { address: string; port: number; kind: string },
    setting = allowOutbound,
  ) {
    const what = host === address ? `${host} is ${kind}` : `${host} resolves to ${address}, ${kind}`;
    const allowance = allowanceFor(address, port);
    super(
      `${what}; allow it with --${setting} ${allowance} (in vault.yaml: ${setting.replaceAll('-', '_')}: "${allowance}")`,
    );
    this.name = 'OutboundRefusal';
  }
}

/** RFC 6761 §6.3: these names always refer to the local host. */
const loopbacks: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** Creates a guard with these exceptions; `resolve` is the system's name resolution. */
export function outboundGuard(
  allowed: readonly AllowedOutbound[] = [],
  resolve: LookupAll = systemLookup,
  { setting, forbidden }: GuardRules = { setting: allowOutbound, forbidden: [] },
): OutboundGuard {
  const more = [['an address in a network that a setting forbids', forbidden]] as const;
  /** The permitted addresses. Throws OutboundRefusal if there are none. */
  const permitted = (host: string, port: number, addresses: readonly LookupAddress[]): LookupAddress[] => {
    const judged = addresses.map((one) => ({ ...one, kind: refusalOf(one.address, port, allowed, more) }));
    const open = judged.filter(({ kind }) => kind === undefined);
    const [first] = judged;
    if (open.length > 0 || first?.kind === undefined) return open;
    throw new OutboundRefusal(host, { ...first, port, kind: first.kind }, setting);
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

/** For addresses that the operator specifies on the command line or in a setting. */
export const unguarded: OutboundGuard = { target: (host, port) => ({ host, port, lookup: systemLookup }) };

/** Whether the name refers to the local host by definition. */
export function isLocalhost(host: string): boolean {
  return /^(?:.+\.)?localhost\.?$/i.test(host);
}
