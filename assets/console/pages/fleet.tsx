/** The fleet: hosts that report what they installed, and endpoints with what they serve. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Tabs } from '../components/tabs.tsx';
import { type Deployments, useDeployments } from '../data/deployments.ts';
import { useSession } from '../data/session.ts';
import { HostList } from '../fleet/host-list.tsx';
import { countsOf, countsText, hostsText, jobsText } from '../fleet/hosts.ts';
import { EndpointsTab } from './endpoints/endpoints.tsx';
import { ScansTab } from './scans/scans.tsx';

export function FleetPage() {
  // Scans are of the whole vault.
  const isConfined = (useSession()?.reach ?? []).length > 0;
  return (
    <Page title="Fleet" lead="What clients installed, and what servers really serve.">
      <Tabs
        label="Fleet"
        tabs={[
          { id: 'hosts', label: 'Hosts', content: () => <Hosts /> },
          { id: 'endpoints', label: 'Endpoints', content: () => <EndpointsTab /> },
          ...(isConfined ? [] : [{ id: 'scans', label: 'Scans', content: () => <ScansTab /> }]),
        ]}
      />
    </Page>
  );
}

function Hosts() {
  const { data, error, reload } = useDeployments('/deployments');
  const isEmpty = data?.items.length === 0;
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton lines={8} />}
      {isEmpty && <NoHosts />}
      {data && !isEmpty && (
        <>
          <div class="tab-head">
            <p>
              <Summary {...data} />
            </p>
          </div>
          <HostList {...data} />
        </>
      )}
    </>
  );
}

/** Says that all jobs are current only once all are loaded. */
function Summary({ items, isWhole }: Deployments) {
  const counts = countsOf(items);
  const hosts = hostsText(new Set(items.map(({ host }) => host)).size);
  if (!isWhole) return <>{`${jobsText(items.length)} on ${hosts} loaded so far…`}</>;
  if (counts.current < items.length) {
    return <>{`${jobsText(items.length)} on ${hosts}: ${countsText(counts)}.`}</>;
  }
  return (
    <>
      {items.length === 1
        ? `1 job on ${hosts}, current.`
        : `All ${jobsText(items.length)} on ${hosts} are current.`}
    </>
  );
}

function NoHosts() {
  return (
    <Empty title="No hosts yet" actions={<ButtonLink href="/api-keys">View API keys</ButtonLink>}>
      <p>
        Each job of the client installer reports which version of a certificate it installed, and whether the
        reload worked. Its host appears here with the first report.
      </p>
      <p>
        The menu of an API key has the installer command. Jobs that were installed with an older vault do not
        report; install them again. More in <span class="mono">docs/how-to/installed-where.md</span>.
      </p>
    </Empty>
  );
}
