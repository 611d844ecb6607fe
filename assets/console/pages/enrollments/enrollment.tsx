/** One enrollment: its rights, and the API keys that it created. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { Problem } from '../../components/notice.tsx';
import { Facts, Page, Section } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Status } from '../../components/status.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import type { Enrollment } from '../../data/administration-shapes.ts';
import { useList, useResource } from '../../data/resource.ts';
import type { ApiKey } from '../../data/shapes.ts';
import { InstallerBuilder } from '../../installer/installer-builder.tsx';
import { tokenFile } from '../../installer/shell-command.ts';
import { navigate, type PageProps } from '../../router.ts';
import { DeleteEnrollmentDialog, RevokeEnrollmentDialog } from './enrollment-ending.tsx';
import { certificatesText, usesText } from './enrollment-words.ts';

export function EnrollmentPage({ params: { id = '' } }: PageProps) {
  const { data, error, reload } = useResource<Enrollment>(`/enrollments/${encodeURIComponent(id)}`);
  const keys = useList<ApiKey>(data && data.uses > 0 ? `/api-keys?enrollment=${data.id}` : undefined);
  const [dialog, setDialog] = useState<'revoke' | 'delete'>();
  const back = <ButtonLink href="/api-keys?tab=enrollments">View all enrollments</ButtonLink>;
  if (!data) {
    return (
      <Page title="Enrollment" actions={back}>
        {error ? (
          <Problem error={error} {...(error.code !== 'enrollment_not_found' && { retry: reload })} />
        ) : (
          <Skeleton />
        )}
      </Page>
    );
  }
  const close = () => setDialog(undefined);
  const retry = () => Promise.all([reload(), keys.reload()]);
  const liveKeys = keys.data?.some(({ state }) => state !== 'revoked') ?? false;
  return (
    <Page
      title={data.name}
      badge={<Status status={data.state} />}
      lead="Machines exchange the token of this enrollment for API keys of their own."
      actions={
        <>
          {(data.state !== 'revoked' || liveKeys) && (
            <Button look="danger" needs="operator" onClick={() => setDialog('revoke')}>
              {data.state === 'revoked' ? 'Revoke API keys' : 'Revoke'}
            </Button>
          )}
          {data.state !== 'active' && (
            <Button look="danger" needs="admin" onClick={() => setDialog('delete')}>
              Delete
            </Button>
          )}
          {back}
        </>
      }
    >
      {[error, keys.error].map((one, index) => one && <Problem key={index} error={one} retry={retry} />)}
      <Rights enrollment={data} />
      <Section title="API keys that it created">
        {data.uses === 0 && <p class="quiet">No machine has used the token yet.</p>}
        {data.uses > 0 && !keys.data && !keys.error && <Skeleton />}
        {keys.data && <Keys keys={keys.data} />}
      </Section>
      {data.state === 'active' && (
        <Section title="Install on a machine">
          <p class="prose quiet">
            The first line of <span class="mono">{tokenFile}</span> on the machine is the token, which was
            shown when the enrollment was created.
          </p>
          <InstallerBuilder apiKey={data} enrollment={tokenFile} />
        </Section>
      )}
      {dialog === 'revoke' && <RevokeEnrollmentDialog enrollment={data} onClose={close} onDone={reload} />}
      {dialog === 'delete' && (
        <DeleteEnrollmentDialog
          enrollment={data}
          onClose={close}
          onDone={() => navigate('/api-keys?tab=enrollments')}
        />
      )}
    </Page>
  );
}

function Rights({ enrollment }: { readonly enrollment: Enrollment }) {
  const { allowed_networks: networks, labels } = enrollment;
  return (
    <div class="card">
      <Facts
        facts={[
          [
            'Token',
            <span key="prefix" class="mono">
              {enrollment.prefix}…
            </span>,
          ],
          ['Uses', usesText(enrollment)],
          ['Certificates', certificatesText(enrollment)],
          ['Permissions', enrollment.scopes.join(', ')],
          ['Networks', networks.length > 0 && networks.join(', ')],
          ['Keys work from', enrollment.bind_address && 'the address that the machine enrolled from'],
          ['Labels', labels.length > 0 && labels.join(', ')],
          [
            'Created',
            <span key="created">
              <Time at={enrollment.created_at} show="both" /> by {enrollment.created_by}
            </span>,
          ],
          ['Expires', <Time key="expires" at={enrollment.expires_at} show="both" />],
          ['Keys expire', <Time key="keys" at={enrollment.key_expires_at} none="never" show="both" />],
          ['Revoked', enrollment.revoked_at && <Time at={enrollment.revoked_at} show="both" />],
          ['Last used', <Time key="used" at={enrollment.last_used_at} none="never" show="both" />],
        ]}
      />
    </div>
  );
}

function Keys({ keys }: { readonly keys: readonly ApiKey[] }) {
  if (keys.length === 0) return <p class="quiet">All API keys that it created are deleted.</p>;
  return (
    <Table
      caption="API keys"
      rows={keys.toReversed()}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Name', cell: ({ id, name }) => <a href={`/api-keys/${id}`}>{name}</a> },
        { title: 'State', cell: ({ state }) => <Status status={state} /> },
        { title: 'Created', cell: ({ created_at }) => <Time at={created_at} /> },
        {
          title: 'Last used',
          cell: ({ last_used_at, last_used_ip }) => (
            <span>
              <Time at={last_used_at} none="never" />
              {last_used_ip !== null && <div class="quiet small">from {last_used_ip}</div>}
            </span>
          ),
        },
      ]}
    />
  );
}
