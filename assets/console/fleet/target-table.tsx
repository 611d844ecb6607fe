/** A table of deploy targets or their certificates, with a search and a state filter if there are many. */
import { Button } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { type Column, Table } from '../components/table.tsx';
import { clearFleetFilter, FleetFilters, useFleetFilter } from './fleet-filters.tsx';
import { filteredTargets, type TargetState, targetStates } from './targets.ts';

/** Shorter tables have no filters. */
const filteredFrom = 10;

export function TargetTable<Row>({
  placeholder,
  rows,
  stateOf,
  textsOf,
  ...table
}: {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** The texts that a search looks at, in words. */
  readonly placeholder: string;
  readonly stateOf: (row: Row) => TargetState | undefined;
  readonly textsOf: (row: Row) => readonly string[];
}) {
  const hasFilters = rows.length >= filteredFrom;
  const filter = useFleetFilter(targetStates);
  const shown = filteredTargets(rows, hasFilters ? filter : { search: '', state: '' }, stateOf, textsOf);
  return (
    <>
      {hasFilters && (
        <>
          <FleetFilters placeholder={placeholder} states={targetStates} />
          <p class="list-result" role="status">
            {shown.length < rows.length &&
              `${shown.length.toLocaleString()} of ${rows.length.toLocaleString()} match.`}
          </p>
        </>
      )}
      {shown.length === 0 ? (
        <Empty title="No matches" actions={<Button onClick={clearFleetFilter}>Show all</Button>} />
      ) : (
        <Table {...table} rows={shown} />
      )}
    </>
  );
}
