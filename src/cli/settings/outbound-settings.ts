/** The setting about connections from here: which addresses of the machine itself and its surroundings they may lead to. */
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
      'loopback, link-local and metadata addresses to connect to nevertheless, such as 127.0.0.1:25 (default: none)',
  },
} as const;

/** Parts between commas; none for `none`, undefined where nothing is set. Throws OperatorError that names the setting. */
export function outboundSettings(
  setting: (name: keyof typeof outboundOptions) => Found | undefined,
): readonly AllowedOutbound[] | undefined {
  const found = setting('allow-outbound');
  if (found === undefined) return undefined;
  const { value, from } = found;
  if (value === 'none') return [];
  return value.split(',').map((part) => {
    const allowed = parseAllowedOutbound(part.trim());
    if (allowed === undefined) {
      throw new OperatorError(`${from}: "${part.trim()}" is not an address to allow`, {
        hint: `Write ${allowedOutboundRule}; or none.`,
      });
    }
    if (allowed.network.length === 0) {
      throw new OperatorError(`${from}: ${part.trim()} would allow every address`, {
        hint: 'Name only the addresses that the vault needs.',
      });
    }
    return allowed;
  });
}
