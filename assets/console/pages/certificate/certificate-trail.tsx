/** The audit events of one certificate: what happened, who did it and from which address. */
import { ButtonLink } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Notice, Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useResource } from '../../data/resource.ts';
import { useRefusal } from '../../data/session.ts';
import type { AuditEvent } from '../../data/shapes.ts';

export function CertificateTrail({ name }: { readonly name: string }) {
  const refusal = useRefusal('whole-vault');
  return refusal === undefined ? (
    <Trail name={name} />
  ) : (
    <Notice title="The audit log is not open to you">{refusal}</Notice>
  );
}

function Trail({ name }: { readonly name: string }) {
  const resource = encodeURIComponent(`certificate:${name}`);
  const { data, error, reload } = useResource<readonly AuditEvent[]>(
    `/audit-events?resource=${resource}&limit=100`,
  );
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.length === 0) return <Empty title="No events yet" />;
  return (
    <div class="stack">
      <Table
        caption="Audit log of this certificate"
        rows={data}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Time', cell: ({ at }) => <Time at={at} show="both" /> },
          { title: 'Action', cell: ({ action }) => <span class="mono">{action}</span>, isName: true },
          {
            title: 'Actor',
            cell: ({ actor, ip }) => (
              <>
                {actor}
                {ip !== null && <span class="quiet"> from {ip}</span>}
              </>
            ),
          },
          {
            title: 'Details',
            cell: ({ detail }) => <span class="quiet small wrap">{detailText(detail)}</span>,
          },
        ]}
      />
      {data.length === 100 && (
        <div>
          <ButtonLink href={`/audit-log?resource=${resource}`}>View all in the audit log</ButtonLink>
        </div>
      )}
    </div>
  );
}

function detailText(detail: AuditEvent['detail']): string {
  return Object.entries(detail)
    .map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
