/** Endpoints with what they serve and why they have their state, with a search and a filter if there are many. */
import { useMemo } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { Endpoints } from '../data/endpoints.ts';
import type { Endpoint } from '../data/shapes.ts';
import { endpointStates, endpointsText, filteredEndpoints, sortedEndpoints } from './endpoint-order.ts';
import { endpointReason, handshakeText, servedText } from './endpoint-words.ts';
import { clearFleetFilter, FleetFilters, useFleetFilter } from './fleet-filters.tsx';

/** Shorter lists have no filters. */
const filteredFrom = 4;

export function EndpointList({
  endpoints: { items, isWhole },
  ofOne = false,
}: {
  readonly endpoints: Endpoints;
  /** Whether all are of one certificate: the list then has no filters and does not show its name. */
  readonly ofOne?: boolean;
}) {
  const hasFilters = !ofOne && items.length >= filteredFrom;
  const filter = useFleetFilter(endpointStates);
  const search = hasFilters ? filter.search : '';
  const state = hasFilters ? filter.state : '';
  const sorted = useMemo(() => sortedEndpoints(items), [items]);
  const rows = useMemo(() => filteredEndpoints(sorted, { search, state }), [sorted, search, state]);
  const isFiltered = rows.length !== items.length;
  return (
    <>
      {hasFilters && (
        <>
          <FleetFilters placeholder="Address, certificate or name" states={endpointStates} />
          <p class="list-result" role="status">
            {isFiltered && `${rows.length.toLocaleString()} of ${endpointsText(items.length)} match.`}
            {isFiltered && !isWhole && ' Loading the rest…'}
          </p>
        </>
      )}
      {rows.length === 0 ? (
        <Empty
          title={isWhole ? 'No matching endpoints' : 'No matches so far'}
          actions={<Button onClick={clearFleetFilter}>Show all</Button>}
        />
      ) : (
        <Table
          caption="Endpoints"
          columns={ofOne ? columns.filter(({ title }) => title !== 'Certificate') : columns}
          rows={rows}
          keyOf={({ id }) => id}
        />
      )}
    </>
  );
}

const columns: readonly Column<Endpoint>[] = [
  {
    title: 'Endpoint',
    cell: (endpoint) => (
      <>
        <a href={`/fleet/endpoints/${endpoint.id}`}>{endpoint.address}</a>
        <span class="under" title={handshakeText(endpoint)}>
          {handshakeText(endpoint)}
        </span>
      </>
    ),
  },
  { title: 'State', cell: (endpoint) => <State endpoint={endpoint} /> },
  { title: 'Certificate', cell: ({ certificate }) => <CertificateLink name={certificate} /> },
  {
    title: 'Serves',
    cell: (endpoint) => (
      <span class="served" title={servedText(endpoint)}>
        {servedText(endpoint)}
      </span>
    ),
  },
  { title: 'Expires', cell: ({ not_after }) => <Time at={not_after} /> },
  { title: 'Last check', cell: ({ checked_at }) => <Time at={checked_at} none="never" />, isExtra: true },
];

export function CertificateLink({ name }: { readonly name: string | null }) {
  if (name === null) return <span class="quiet">only watched</span>;
  return <a href={`/certificates/${encodeURIComponent(name)}?tab=deployments`}>{name}</a>;
}

function State({ endpoint }: { readonly endpoint: Endpoint }) {
  const reason = endpointReason(endpoint);
  return (
    <>
      <Status status={endpoint.state} />
      {reason !== undefined && (
        <div class="reason" title={reason}>
          {reason}
        </div>
      )}
    </>
  );
}
