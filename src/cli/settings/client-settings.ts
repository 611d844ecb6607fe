/** The settings of clients: trusted proxies, connection limit and API key rate. */

import { OperatorError } from '../../base/operator-error.ts';
import { defaultConnectionLimits } from '../../http/server/connection-limits.ts';
import { type IpNetwork, ipNetworkRule, parseIpNetwork } from '../../net/ip-network.ts';
import type { Found } from './setting-values.ts';

export const clientOptions = {
  'trusted-proxies': {
    type: 'string',
    valueHint: 'CIDR,...',
    description: 'proxies whose X-Forwarded-For is trusted, such as 127.0.0.1,10.0.0.0/8 (default: none)',
  },
  'max-connections': {
    type: 'string',
    valueHint: 'N',
    description: `the maximum number of open connections (default: ${defaultConnectionLimits.most})`,
  },
  'api-key-rate': {
    type: 'string',
    valueHint: 'N',
    description:
      'the maximum requests per minute with one API key, 0 for no limit (default: 6000 audited requests, bursts of 10000)',
  },
} as const;

export type ClientSettings = {
  readonly trustedProxies: readonly IpNetwork[];
  readonly maxConnections: number;
  /** Requests per minute with one API key; see `KeyLimits`. */
  readonly apiKeyRate: number | undefined;
};

/** Throws OperatorError that names the invalid setting. */
export function clientSettings(
  setting: (name: keyof typeof clientOptions) => Found | undefined,
): ClientSettings {
  return {
    trustedProxies: trustedProxies(setting('trusted-proxies')),
    maxConnections: wholeNumber(setting('max-connections'), defaultConnectionLimits.most, [10, 1_000_000]),
    apiKeyRate: apiKeyRate(setting('api-key-rate')),
  };
}

function apiKeyRate(setting: Found | undefined): number | undefined {
  return setting === undefined ? undefined : wholeNumber(setting, 0, [0, 1_000_000]);
}

/** A comma-separated list of networks; empty if not set. */
export function trustedProxies(setting: Found | undefined): readonly IpNetwork[] {
  if (setting === undefined) return [];
  const { value, from } = setting;
  return value.split(',').map((part) => {
    const network = parseIpNetwork(part.trim());
    if (network === undefined) {
      throw new OperatorError(`${from}: "${part.trim()}" is not a network`, {
        hint: `List the addresses of your proxies, separated by commas: ${ipNetworkRule}.`,
      });
    }
    if (network.text.endsWith('/0')) {
      throw new OperatorError(`${from}: ${network.text} would let every client claim any address`, {
        hint: 'List only the addresses of your proxies.',
      });
    }
    return network;
  });
}

function wholeNumber(
  setting: Found | undefined,
  usual: number,
  [least, most]: readonly [least: number, most: number],
): number {
  if (setting === undefined) return usual;
  const { value, from } = setting;
  if (/^\d{1,9}$/.test(value) && Number(value) >= least && Number(value) <= most) return Number(value);
  throw new OperatorError(`${from}: "${value}" is not a whole number from ${least} to ${most}`, {
    hint: `Use a number such as ${usual === 0 ? 60 : usual}.`,
  });
}
