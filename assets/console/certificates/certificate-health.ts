/** The health of a certificate, which determines its color, its place in the list, and the tile that counts it. */
import type { Certificate } from '../data/shapes.ts';

export type Health = 'bad' | 'warning' | 'good' | 'quiet';

/** The fields that health is derived from. */
export type HealthFacts = Pick<Certificate, 'status'> & {
  readonly renewal: Pick<Certificate['renewal'], 'last_error'>;
};

/** `bad` is broken now, `warning` will break without action; `quiet` is disabled or not issued yet. */
export function healthOf(facts: HealthFacts): Health {
  if (facts.status === 'pending' && facts.renewal.last_error !== null) return 'bad';
  return healths[groupOf(facts)];
}

const order: readonly Health[] = ['bad', 'warning', 'good', 'quiet'];

/** The rank of a health; 0 is the worst. */
export function healthRank(health: Health): number {
  return order.indexOf(health);
}

/** Compares two healths; the worse one sorts first. */
export function byHealth(a: Health, b: Health): number {
  return healthRank(a) - healthRank(b);
}

/** Every certificate is in exactly one group. */
export type Group = 'expired' | 'failing' | 'expiring' | 'healthy' | 'inactive';

/** The health of the certificates in a group; a failing one without a version is worse. */
export const healths: Readonly<Record<Group, Health>> = {
  expired: 'bad',
  failing: 'warning',
  expiring: 'warning',
  healthy: 'good',
  inactive: 'quiet',
};

/** All groups, those that need attention first, with the rule that `groupOf` follows. */
export const groups: readonly { readonly id: Group; readonly label: string; readonly rule: string }[] = [
  { id: 'expired', label: 'Expired', rule: 'Expired, or not valid yet' },
  { id: 'failing', label: 'Failing', rule: 'The last renewal or first order failed; not expired' },
  {
    id: 'expiring',
    label: 'Expiring soon',
    rule: 'In the last quarter of the lifetime, at most 30 days before expiry; no renewal failed',
  },
  { id: 'healthy', label: 'Healthy', rule: 'Valid; the last renewal did not fail' },
  { id: 'inactive', label: 'Inactive', rule: 'Disabled, or not issued yet' },
];

export function groupOf({ status, renewal }: HealthFacts): Group {
  if (status === 'disabled') return 'inactive';
  if (status === 'expired' || status === 'not_yet_valid') return 'expired';
  if (renewal.last_error !== null) return 'failing';
  if (status === 'pending') return 'inactive';
  return status === 'expiring' ? 'expiring' : 'healthy';
}
