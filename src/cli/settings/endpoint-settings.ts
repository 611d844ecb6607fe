/** The settings of endpoints: which addresses the vault may check. */
import { OperatorError } from '../../base/operator-error.ts';
import { type IpNetwork, ipNetworkRule, parseIpNetwork } from '../../net/ip-network.ts';
import type { AllowedOutbound } from '../../net/outbound-addresses.ts';
import { allowedAddresses } from './outbound-settings.ts';
import type { Found } from './setting-values.ts';

export const endpointOptions = {
  'endpoint-allow': {
    type: 'string',
    valueHint: 'ADDRESS[:PORT],...',
    description:
      'check endpoints at these addresses, although they are loopback, link-local, metadata or forbidden ones (default: none)',
  },
  'endpoint-forbid': {
    type: 'string',
    valueHint: 'NETWORK,...',
    description: 'never check endpoints in these networks, such as 10.9.0.0/16 (default: none)',
  },
} as const;

export type EndpointSettings = {
  /** Exceptions from everything that is refused. */
  readonly allowed: readonly AllowedOutbound[];
  readonly forbidden: readonly IpNetwork[];
};

/** Throws OperatorError that names the invalid setting. */
export function endpointSettings(
  setting: (name: keyof typeof endpointOptions) => Found | undefined,
): EndpointSettings {
  const allowed = setting('endpoint-allow');
  return {
    allowed: allowed === undefined ? [] : allowedAddresses(allowed),
    forbidden: networksIn(setting('endpoint-forbid')),
  };
}

/** A comma-separated list of networks; empty for `none`. Throws OperatorError that names the setting. */
export function networksIn(found: Found | undefined): IpNetwork[] {
  if (found === undefined || found.value === 'none') return [];
  return found.value.split(',').map((part) => {
    const network = parseIpNetwork(part.trim());
    if (network !== undefined) return network;
    throw new OperatorError(`${found.from}: "${part.trim()}" is not a network`, {
      hint: `Use none, or networks: ${ipNetworkRule}.`,
    });
  });
}
