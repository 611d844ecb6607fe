/** Lists of endpoints: counts, search, filter and order. */
import type { Endpoint, EndpointState } from '../data/shapes.ts';
import { searchFor } from '../text/search.ts';
import type { FleetFilter } from './hosts.ts';

/** From the state that needs attention first. */
export const endpointStates = [
  ...(['untrusted', 'unknown', 'unreachable', 'expiring', 'outdated', 'unchecked', 'current'] as const),
] as const satisfies readonly EndpointState[];

const ranks = new Map<EndpointState, number>(endpointStates.map((state, rank) => [state, rank]));

const collator = new Intl.Collator(undefined, { numeric: true });

/** Endpoints that need attention first, then by address and server name. */
export function sortedEndpoints(endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.toSorted(
    (one, other) =>
      (ranks.get(one.state) ?? 0) - (ranks.get(other.state) ?? 0) ||
      collator.compare(one.address, other.address) ||
      collator.compare(one.server_name, other.server_name),
  );
}

/** The endpoints in the state that have all words of the search. */
export function filteredEndpoints(
  endpoints: readonly Endpoint[],
  { search, state }: FleetFilter,
): readonly Endpoint[] {
  if (search === '' && state === '') return endpoints;
  const matches = searchFor(search);
  return endpoints.filter(
    (one) =>
      (state === '' || one.state === state) &&
      matches([one.address, one.server_name, one.certificate ?? '', one.starttls ?? '', ...one.names]),
  );
}

/** "1 unreachable, 3 current". */
export function endpointCountsText(endpoints: readonly Endpoint[]): string {
  const byState = Map.groupBy(endpoints, ({ state }) => state);
  return endpointStates
    .flatMap((state) => {
      const count = byState.get(state)?.length ?? 0;
      return count === 0 ? [] : `${count.toLocaleString()} ${state}`;
    })
    .join(', ');
}

/** "1 endpoint", "3 endpoints". */
export function endpointsText(count: number): string {
  return count === 1 ? '1 endpoint' : `${count.toLocaleString()} endpoints`;
}
