/** One host: its jobs, what each has installed, and why a job has its state. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { useDeployments } from '../data/deployments.ts';
import { DeploymentList } from '../fleet/deployment-list.tsx';
import { countsText, hostsOf, jobsText } from '../fleet/hosts.ts';
import type { PageProps } from '../router.ts';

export function HostPage({ params: { host: name = '' } }: PageProps) {
  const { data, error, reload } = useDeployments(`/deployments?host=${encodeURIComponent(name)}`);
  const [host] = hostsOf(data?.items ?? []);
  const back = <ButtonLink href="/fleet">View all hosts</ButtonLink>;
  return (
    <Page
      title={name}
      badge={host && <Status status={host.worst} />}
      lead={host && `${jobsText(host.jobs.length)}: ${countsText(host.counts)}.`}
      actions={back}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.items.length === 0 && (
        <Empty title="Host not found" actions={back}>
          <p>No job of this host reports. A job that has been silent for 30 days is removed.</p>
        </Empty>
      )}
      {data && host && (
        <DeploymentList
          deployments={data}
          name={{
            title: 'Certificate',
            cell: ({ certificate }) => (
              <a href={`/certificates/${encodeURIComponent(certificate)}?tab=deployments`}>{certificate}</a>
            ),
          }}
        />
      )}
    </Page>
  );
}
