/** The lifetimes of what the endpoints of a certificate serve, next to that of its current version. */
import type { Certificate, Endpoint } from '../data/shapes.ts';
import type { Life } from './timeline-layout.ts';

export type ServedLife = Life & {
  /** The endpoints that serve it, by address. */
  readonly endpoints: readonly string[];
};

/** More other certificates than a picture can show are left to the list. */
const maxLives = 8;

/** One for the current version, and one for each other certificate that is served at `now`. */
export function servedLives(
  { current_version: current, renewal }: Pick<Certificate, 'current_version' | 'renewal'>,
  endpoints: readonly Endpoint[],
  now: number,
): ServedLife[] {
  const served = Map.groupBy(
    endpoints.filter(
      ({ fingerprint_sha256, state }) => fingerprint_sha256 !== null && state !== 'unreachable',
    ),
    ({ fingerprint_sha256 }) => fingerprint_sha256,
  );
  const addressesOf = (some: readonly Endpoint[] = []) => some.map(({ address }) => address);
  const lives: ServedLife[] = [];
  if (current !== null) {
    const to = Date.parse(current.not_after);
    lives.push({
      name: `Version ${current.version}`,
      from: Date.parse(current.not_before),
      to,
      renewAt: renewal.next_at === null ? undefined : Date.parse(renewal.next_at),
      health: to <= now ? 'bad' : 'good',
      endpoints: addressesOf(served.get(current.fingerprint_sha256)),
    });
  }
  let others = 0;
  for (const [fingerprint, some] of served) {
    const [first] = some;
    if (first?.not_before == null || first.not_after === null || fingerprint === current?.fingerprint_sha256)
      continue;
    if (first.version === null) others += 1;
    const to = Date.parse(first.not_after);
    lives.push({
      name: first.version === null ? nameOfOther(others) : `Version ${first.version}`,
      from: Date.parse(first.not_before),
      to,
      renewAt: undefined,
      health: first.version === null || to <= now ? 'bad' : 'warning',
      endpoints: addressesOf(some),
    });
  }
  return lives.slice(0, maxLives);
}

/** Certificates from elsewhere may have the same names. */
function nameOfOther(number: number): string {
  return number === 1 ? 'Another certificate' : `Another certificate (${number})`;
}
