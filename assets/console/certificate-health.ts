/** How worried somebody should be about a certificate: the four colours of the console, and the order of trouble. */
import type { Certificate } from './shapes.ts';

export type Health = 'bad' | 'warning' | 'good' | 'quiet';

/** What its health is derived from. */
export type Sick = Pick<Certificate, 'status'> & {
  readonly renewal: Pick<Certificate['renewal'], 'last_error'>;
};

/** `bad` is broken now, `warning` will be without help; `quiet` is left alone on purpose, or has not begun yet. */
export function healthOf({ status, renewal }: Sick): Health {
  if (status === 'disabled') return 'quiet';
  if (status === 'expired') return 'bad';
  if (status === 'pending') return renewal.last_error === null ? 'quiet' : 'bad';
  return status === 'expiring' || renewal.last_error !== null ? 'warning' : 'good';
}

const order: readonly Health[] = ['bad', 'warning', 'good', 'quiet'];

/** Its place in the order: the greatest trouble is 0. */
export function troubleOf(health: Health): number {
  return order.indexOf(health);
}

/** Negative where `a` is the greater trouble. */
export function byTrouble(a: Health, b: Health): number {
  return troubleOf(a) - troubleOf(b);
}
