/** The settings about clients: whose word about them is believed, and how much they may ask for. */

import { OperatorError } from '../../base/operator-error.ts';
import { usualConnectionLimits } from '../../http/server/connection-limits.ts';
import { type IpNetwork, ipNetworkRule, parseIpNetwork } from '../../net/ip-network.ts';
import type { Found } from './setting-values.ts';

export const clientOptions = {
  'trusted-proxies': {
    type: 'string',
    valueHint: 'CIDR,...',
    description:
      'proxies whose word about the client is believed, such as 127.0.0.1,10.0.0.0/8 (default: none)',
  },
  'max-connections': {
    type: 'string',
    valueHint: 'N',
    description: `how many connections there may be at once (default: ${usualConnectionLimits.most})`,
  },
  'api-key-rate': {
    type: 'string',
    valueHint: 'N',
    description:
      'requests a minute with one API key, 0 for no limit (default: 6000 recorded ones, 10000 at once)',
  },
} as const;

export type ClientSettings = {
  readonly trustedProxies: readonly IpNetwork[];
  readonly maxConnections: number;
  /** Requests a minute with one key, as `KeyLimits` has them. */
  readonly apiKeyRate: number | undefined;
};

/** Throws OperatorError that names the setting that is wrong. */
export function clientSettings(
  setting: (name: keyof typeof clientOptions) => Found | undefined,
): ClientSettings {
  return {
    trustedProxies: trustedProxies(setting('trusted-proxies')),
    maxConnections: wholeNumber(setting('max-connections'), usualConnectionLimits.most, [10, 1_000_000]),
    apiKeyRate: apiKeyRate(setting('api-key-rate')),
  };
}

function apiKeyRate(setting: Found | undefined): number | undefined {
  return setting === undefined ? undefined : wholeNumber(setting, 0, [0, 1_000_000]);
}

/** Networks between commas; none where nothing is set. */
export function trustedProxies(setting: Found | undefined): readonly IpNetwork[] {
  if (setting === undefined) return [];
  const { value, from } = setting;
  return value.split(',').map((part) => {
    const network = parseIpNetwork(part.trim());
    if (network === undefined) {
      throw new OperatorError(`${from}: "${part.trim()}" is not a network`, {
        hint: `Write the addresses of your proxies, separated by commas: ${ipNetworkRule}.`,
      });
    }
    if (network.text.endsWith('/0')) {
      throw new OperatorError(`${from}: with ${network.text} everybody could claim any address`, {
        hint: 'Name the addresses of your proxies alone.',
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
    hint: `Write one, such as ${usual === 0 ? 60 : usual}.`,
  });
}
