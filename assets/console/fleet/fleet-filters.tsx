/** The search and the state filter above hosts, deployments and endpoints; both are kept in the URL. */
import { TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { changeQuery, usePlace } from '../router.ts';
import type { FleetFilter } from './hosts.ts';

/** A state that this list does not have is that of another tab, and filters nothing. */
export function useFleetFilter(states: readonly string[]): FleetFilter {
  const { query } = usePlace();
  const state = query.get('state') ?? '';
  return { search: query.get('search') ?? '', state: states.includes(state) ? state : '' };
}

export function clearFleetFilter(): void {
  changeQuery({ search: '', state: '' });
}

export function FleetFilters({
  placeholder,
  states,
  current = 'current',
}: {
  /** What a search looks at. */
  readonly placeholder: string;
  readonly states: readonly string[];
  /** The label of the state `current`. */
  readonly current?: string;
}) {
  const { search, state } = useFleetFilter(states);
  return (
    <search class="list-filters">
      <TextField
        label="Search"
        type="search"
        placeholder={placeholder}
        value={search}
        onValue={(value) => changeQuery({ search: value })}
      />
      <Select
        label="State"
        value={state}
        onValue={(value) => changeQuery({ state: value })}
        choices={[
          { value: '', label: 'Any' },
          ...states.map((value) => ({ value, label: value === 'current' ? current : value })),
        ]}
      />
    </search>
  );
}
