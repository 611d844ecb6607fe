/** One API key: its rights, and the hosts that use it. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Facts, Page, Section } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { Time } from '../components/time.tsx';
import type { Enrollment } from '../data/administration-shapes.ts';
import { useDeployments } from '../data/deployments.ts';
import { useList } from '../data/resource.ts';
import type { ApiKey } from '../data/shapes.ts';
import { HostList } from '../fleet/host-list.tsx';
import type { PageProps } from '../router.ts';

export function ApiKeyPage({ params }: PageProps) {
  const { data, error, reload } = useList<ApiKey>('/api-keys');
  const apiKey = data?.find(({ id }) => String(id) === params.id);
  const back = <ButtonLink href="/api-keys">View all API keys</ButtonLink>;
  return (
    <Page
      title={apiKey?.name ?? 'API key'}
      badge={apiKey && <Status status={apiKey.state} />}
      actions={
        <>
          {back}
          {apiKey?.state === 'active' && (
            <ButtonLink href={`/api-keys/${apiKey.id}/install`}>Show installer command</ButtonLink>
          )}
        </>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && !apiKey && (
        <Empty title="API key not found" actions={back}>
          <p>The key may have been deleted.</p>
        </Empty>
      )}
      {apiKey && (
        <>
          <Rights apiKey={apiKey} />
          <Section title="Hosts that use this key">
            <Hosts id={apiKey.id} />
          </Section>
        </>
      )}
    </Page>
  );
}

function Rights({ apiKey }: { readonly apiKey: ApiKey }) {
  const { certificates, certificate_labels: labels, allowed_networks: networks } = apiKey;
  return (
    <div class="card">
      <Facts
        facts={[
          [
            'Key',
            <span key="prefix" class="mono">
              {apiKey.prefix}…
            </span>,
          ],
          ['Certificates', certificates[0] === '*' ? 'any' : [...certificates, ...labels].join(', ')],
          ['Permissions', apiKey.scopes.join(', ')],
          ['Role', apiKey.role],
          ['Reach', apiKey.reach.length > 0 && apiKey.reach.join(', ')],
          ['Profiles', apiKey.profiles.length > 0 && apiKey.profiles.join(', ')],
          ['Labels', apiKey.labels.length > 0 && apiKey.labels.join(', ')],
          ['Networks', networks.length > 0 && networks.join(', ')],
          ['Client certificate', apiKey.client_certificate],
          [
            'Enrollment',
            apiKey.enrollment !== null && <EnrollmentLink key="enrollment" id={apiKey.enrollment} />,
          ],
          ['Created', <Time key="created" at={apiKey.created_at} show="both" />],
          ['Expires', <Time key="expires" at={apiKey.expires_at} none="never" show="both" />],
          ['Last used', <Time key="used" at={apiKey.last_used_at} none="never" show="both" />],
        ]}
      />
    </div>
  );
}

function EnrollmentLink({ id }: { readonly id: number }) {
  const { data } = useList<Enrollment>('/enrollments');
  const enrollment = data?.find((one) => one.id === id);
  // It may be deleted, or outside the person's reach.
  if (enrollment === undefined) return <>{`enrollment ${id}`}</>;
  return <a href={`/api-keys/enrollments/${id}`}>{enrollment.name}</a>;
}

function Hosts({ id }: { readonly id: number }) {
  const { data, error, reload } = useDeployments(`/deployments?api_key=${id}`);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.items.length === 0) {
    return <p class="quiet">No job of the client installer reports with this key.</p>;
  }
  return <HostList {...data} />;
}
