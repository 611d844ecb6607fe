/** The setting of outbound connections: which loopback, link-local and metadata addresses are allowed. */
import { OperatorError } from '../../base/operator-error.ts';
import {
  type AllowedOutbound,
  allowedOutboundRule,
  parseAllowedOutbound,
} from '../../net/outbound-addresses.ts';
import type { Found } from './setting-values.ts';

export const outboundOptions = {
  'allow-outbound': {
    type: 'string',
    valueHint: 'ADDRESS[:PORT],...',
    description:
      'allow connections to these loopback, link-local or metadata addresses, such as 127.0.0.1:25 (default: none)',
  },
} as const;

/** A comma-separated list; empty for `none`, undefined if not set. Throws OperatorError that names the setting. */
export function outboundSettings(
  setting: (name: keyof typeof outboundOptions) => Found | undefined,
): readonly AllowedOutbound[] | undefined {
  const found = setting('allow-outbound');
  return found === undefined ? undefined : allowedAddresses(found);
}

/** A comma-separated list of addresses and networks, each with an optional port; empty for `none`. */
export function allowedAddresses({ value, from }: Found): readonly AllowedOutbound[] {
  if (value === 'none') return [];
  return value.split(',').map((part) => {
    const allowed = parseAllowedOutbound(part.trim());
    if (allowed === undefined) {
      throw new OperatorError(`${from}: "${part.trim()}" is not an address`, {
        hint: `Use ${allowedOutboundRule}; or none.`,
      });
    }
    if (allowed.network.length === 0) {
      throw new OperatorError(`${from}: ${part.trim()} would allow every address`, {
        hint: 'List only the addresses that the vault needs.',
      });
    }
    return allowed;
  });
}
