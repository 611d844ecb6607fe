/** Deploy targets and their certificates: pages, states, counts, search, filter and order. */
import { searchFor } from '../text/search.ts';
import type { FleetFilter } from './hosts.ts';

/** From the state that needs attention first. */
export const targetStates = ['failing', 'waiting', 'current'] as const;

export type TargetState = (typeof targetStates)[number];

type Counts = Readonly<Record<TargetState, number>>;

/** The page of a deploy target. */
export function targetPage(name: string): string {
  return `/deploy-targets/${encodeURIComponent(name)}`;
}

/** The state of its certificates that needs attention first; undefined for a target without certificates. */
export function worstOf(counts: Counts): TargetState | undefined {
  return targetStates.find((state) => counts[state] > 0);
}

/** "2 failing, 1 current", or "none". */
export function targetCounts(counts: Counts): string {
  const texts = targetStates
    .filter((state) => counts[state] > 0)
    .map((state) => `${counts[state].toLocaleString()} ${state}`);
  return texts.join(', ') || 'none';
}

/** Rows that need attention first, and otherwise in their order, in the state and with all words of the search. */
export function filteredTargets<Row>(
  rows: readonly Row[],
  { search, state }: FleetFilter,
  stateOf: (row: Row) => TargetState | undefined,
  textsOf: (row: Row) => readonly string[],
): Row[] {
  const matches = search === '' ? () => true : searchFor(search);
  const rank = (row: Row) => targetStates.indexOf(stateOf(row) ?? 'current');
  return rows
    .filter((row) => (state === '' || stateOf(row) === state) && matches(textsOf(row)))
    .sort((one, other) => rank(one) - rank(other));
}
