/** The health of a certificate, which determines its color and its place in the list. */
import type { Certificate } from '../data/shapes.ts';

export type Health = 'bad' | 'warning' | 'good' | 'quiet';

/** The fields that health is derived from. */
export type HealthFacts = Pick<Certificate, 'status'> & {
  readonly renewal: Pick<Certificate['renewal'], 'last_error'>;
};

/** `bad` is broken now, `warning` will break without action; `quiet` is disabled or not issued yet. */
export function healthOf({ status, renewal }: HealthFacts): Health {
  if (status === 'disabled') return 'quiet';
  if (status === 'expired' || status === 'not_yet_valid') return 'bad';
  if (status === 'pending') return renewal.last_error === null ? 'quiet' : 'bad';
  return status === 'expiring' || renewal.last_error !== null ? 'warning' : 'good';
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
