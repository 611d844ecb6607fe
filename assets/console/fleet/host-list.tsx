/** Hosts with their jobs by state, with a search and a filter if there are many. */
import { useMemo } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { Deployments } from '../data/deployments.ts';
import { clearFleetFilter, FleetFilters, useFleetFilter } from './fleet-filters.tsx';
import { HostLink } from './host-link.tsx';
import { countsText, deploymentStates, filteredHosts, type Host, hostsOf, hostsText } from './hosts.ts';

export function HostList({ items, isWhole }: Deployments) {
  const { search, state } = useFleetFilter(deploymentStates);
  const hosts = useMemo(() => hostsOf(items), [items]);
  const rows = useMemo(() => filteredHosts(hosts, { search, state }), [hosts, search, state]);
  const isFiltered = rows.length !== hosts.length;
  return (
    <>
      <FleetFilters placeholder="Host or certificate" states={deploymentStates} current="all current" />
      <p class="list-result" role="status">
        {isFiltered && `${rows.length.toLocaleString()} of ${hostsText(hosts.length)} match.`}
        {isFiltered && !isWhole && ' Loading the rest…'}
      </p>
      {rows.length === 0 ? (
        <Empty
          title={isWhole ? 'No matching hosts' : 'No matches so far'}
          actions={<Button onClick={clearFleetFilter}>Show all</Button>}
        />
      ) : (
        <Table caption="Hosts" columns={columns} rows={rows} keyOf={({ name }) => name} />
      )}
    </>
  );
}

const columns: readonly Column<Host>[] = [
  { title: 'Host', cell: ({ name }) => <HostLink host={name} /> },
  { title: 'State', cell: ({ worst }) => <Status status={worst} /> },
  { title: 'Jobs', cell: ({ counts }) => countsText(counts) },
  { title: 'Last seen', cell: ({ lastSeen }) => <Time at={lastSeen} /> },
];
