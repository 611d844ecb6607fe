/**
 * Which addresses the validation of ACME challenges may connect to. Clients of the ACME server choose the names, so
 * these rules are apart from `--allow-outbound`, where administrators choose the targets.
 */
import { isIP } from 'node:net';
import type { IpNetwork } from './ip-network.ts';
import { type AllowedOutbound, allowanceFor, refusalOf } from './outbound-addresses.ts';
import type { OutboundGuard } from './outbound-guard.ts';

export type ValidationRules = {
  /** Exceptions from everything that is refused. */
  readonly allowed: readonly AllowedOutbound[];
  /** Networks that are refused beside loopback, link-local, metadata, multicast and reserved addresses. */
  readonly forbidden: readonly IpNetwork[];
};

/** Validation does not connect to this address. The message is a clause that says why, and how to allow it. */
export class ValidationRefusal extends Error {
  constructor(address: string, port: number, kind: string) {
    super(
      `the vault does not validate at ${kind}; an administrator can allow it with --acme-validation-allow ${allowanceFor(address, port)}`,
    );
    this.name = 'ValidationRefusal';
  }
}

/**
 * A guard for addresses. It takes no names: a name is resolved once, and the address that was checked is the one used.
 */
export function validationGuard({ allowed, forbidden }: ValidationRules): OutboundGuard {
  return {
    target: (host, port) => {
      if (isIP(host) === 0) throw new Error(`${host} is not an address`);
      const kind = refusalOf(host, port, allowed, [
        ['an address in a network that a setting forbids', forbidden],
      ]);
      if (kind !== undefined) throw new ValidationRefusal(host, port, kind);
      return { host, port, lookup: noLookup };
    },
  };
}

/** Addresses need none. */
function noLookup(hostname: string): never {
  throw new Error(`${hostname} is not an address`);
}
