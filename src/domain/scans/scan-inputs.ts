/** What a scan is, as the API and the command line take it. */
import { z } from 'zod';
import { day, durationPattern, hour, parseDuration } from '../../base/duration.ts';
import { type IpNetwork, ipNetworkRule, parseIpNetwork, sizeOf } from '../../net/ip-network.ts';
import { parsed, quoted } from '../input-strings.ts';

/** The maximum number of addresses and ports of a scan: those of a /16 with 16 ports. */
export const maxConnections = 1_048_576;

/** Connections per second unless the scan says otherwise. */
export const defaultRate = 50;

/** More could disturb firewalls, which remember each connection. */
export const maxRate = 200;

const maxNetworks = 64;
const maxPorts = 32;

const network = parsed(parseIpNetwork, (text) => `${quoted(text)} is not a network; ${ipNetworkRule}`, {
  pattern: '^[0-9A-Fa-f.:]{2,45}(/\\d{1,3})?$',
});

const interval = parsed(
  (text) => {
    const ms = parseDuration(text);
    return ms !== undefined && ms >= hour && ms <= 90 * day ? ms : undefined;
  },
  (text) => `${quoted(text)} is not an interval: write a number and h or d, from 1h to 90d, such as 7d`,
  { pattern: durationPattern },
);

export const createScanInput = z
  .strictObject({
    networks: z.array(network).min(1).max(maxNetworks).describe('such as 10.0.0.0/24'),
    ports: z.array(z.int().min(1).max(65_535)).min(1).max(maxPorts).default([443]),
    rate: z.int().min(1).max(maxRate).default(defaultRate).describe('connections per second'),
    interval: interval.optional().describe('between two runs, from 1h to 90d; by default it runs once'),
  })
  .refine(
    ({ networks, ports }) => connectionsOf(networks, ports) <= maxConnections,
    `more than ${maxConnections} addresses and ports: use smaller networks or fewer ports`,
  );

export type CreateScanInput = z.output<typeof createScanInput>;

/** How many connections a run makes. */
export function connectionsOf(networks: readonly IpNetwork[], ports: readonly number[]): number {
  return networks.reduce((sum, one) => sum + sizeOf(one), 0) * ports.length;
}
