/** Deployments with what is installed and why a job has its state, with a search and a filter if there are many. */
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { Deployments } from '../data/deployments.ts';
import type { Deployment } from '../data/shapes.ts';
import { reasonOf, versionText } from './deployment-words.ts';
import { clearFleetFilter, FleetFilters, useFleetFilter } from './fleet-filters.tsx';
import { deploymentStates, filteredDeployments, jobsText, sortedDeployments } from './hosts.ts';

/** Shorter lists have no filters. */
const filteredFrom = 10;

export function DeploymentList({
  deployments: { items, isWhole },
  name,
}: {
  readonly deployments: Deployments;
  /** The column that tells the rows apart. */
  readonly name: { readonly title: string; readonly cell: (deployment: Deployment) => ComponentChildren };
}) {
  const hasFilters = items.length >= filteredFrom;
  const filter = useFleetFilter(deploymentStates);
  const search = hasFilters ? filter.search : '';
  const state = hasFilters ? filter.state : '';
  const sorted = useMemo(() => sortedDeployments(items), [items]);
  const rows = useMemo(() => filteredDeployments(sorted, { search, state }), [sorted, search, state]);
  const isFiltered = rows.length !== items.length;
  return (
    <>
      {hasFilters && (
        <>
          <FleetFilters placeholder="Host, certificate or destination" states={deploymentStates} />
          <p class="list-result" role="status">
            {isFiltered && `${rows.length.toLocaleString()} of ${jobsText(items.length)} match.`}
            {isFiltered && !isWhole && ' Loading the rest…'}
          </p>
        </>
      )}
      {rows.length === 0 ? (
        <Empty
          title={isWhole ? 'No matching jobs' : 'No matches so far'}
          actions={<Button onClick={clearFleetFilter}>Show all</Button>}
        />
      ) : (
        <Table
          caption="Jobs"
          columns={columns(name)}
          rows={rows}
          keyOf={({ certificate, id }) => `${certificate} ${id}`}
        />
      )}
    </>
  );
}

function columns(name: Pick<Column<Deployment>, 'title' | 'cell'>): Column<Deployment>[] {
  return [
    {
      title: name.title,
      cell: (deployment) => (
        <>
          {name.cell(deployment)}
          <span class="under" title={`${deployment.job}: ${deployment.destination}`}>
            {deployment.deploy_target !== null && (
              <>
                <a href={`/deploy-targets/${encodeURIComponent(deployment.deploy_target)}`}>
                  {deployment.deploy_target}
                </a>
                :{' '}
              </>
            )}
            {deployment.destination}
          </span>
        </>
      ),
    },
    { title: 'State', cell: (deployment) => <State deployment={deployment} /> },
    {
      title: 'Version',
      cell: (deployment) => <span class="installed-version">{versionText(deployment)}</span>,
    },
    { title: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
    { title: 'Next run', cell: ({ next_run_at }) => <Time at={next_run_at} />, isExtra: true },
  ];
}

function State({ deployment }: { readonly deployment: Deployment }) {
  const reason = reasonOf(deployment);
  return (
    <>
      <Status status={deployment.state} />
      {reason !== undefined && (
        <div class="reason" title={reason}>
          {reason}
        </div>
      )}
    </>
  );
}
