/** The search and the state filter above hosts and deployments; both are kept in the URL. */
import { TextField } from '../components/field.tsx';
import { Select } from '../components/select.tsx';
import { changeQuery, usePlace } from '../router.ts';
import { deploymentStates, type FleetFilter } from './hosts.ts';

export function useFleetFilter(): FleetFilter {
  const { query } = usePlace();
  return { search: query.get('search') ?? '', state: query.get('state') ?? '' };
}

export function clearFleetFilter(): void {
  changeQuery({ search: '', state: '' });
}

export function FleetFilters({
  placeholder,
  current,
}: {
  /** What a search looks at. */
  readonly placeholder: string;
  /** The label of the state `current`. */
  readonly current: string;
}) {
  const { search, state } = useFleetFilter();
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
          ...deploymentStates.map((value) => ({ value, label: value === 'current' ? current : value })),
        ]}
      />
    </search>
  );
}
