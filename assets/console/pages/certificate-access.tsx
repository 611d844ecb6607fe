/** Which API keys can read a certificate, and which of them its private key. */
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge, Status } from '../components/status.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { useList } from '../resource.ts';
import type { ApiKey } from '../shapes.ts';

const abilities: Readonly<Record<string, string>> = {
  'certificates:read': 'read',
  'private_keys:read': 'private key',
  'renewals:trigger': 'renew',
};

export function CertificateAccess({ name }: { readonly name: string }) {
  const { data, error, reload } = useList<ApiKey>(`/certificates/${encodeURIComponent(name)}/api-keys`);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.length === 0) {
    return (
      <Empty
        title="No API key can read it"
        actions={
          <ButtonLink look="primary" href={`/api-keys/new?certificate=${encodeURIComponent(name)}`}>
            New API key
          </ButtonLink>
        }
      >
        <p>
          A machine that needs this certificate gets a key of its own, and with it the command that installs
          it.
        </p>
      </Empty>
    );
  }
  return (
    <Table
      caption="API keys that can read this certificate"
      rows={data}
      keyOf={({ id }) => id}
      columns={[
        { title: 'Key', cell: (key) => key.name },
        { title: 'State', cell: ({ state }) => <Status status={state} /> },
        {
          title: 'May',
          cell: ({ scopes }) => (
            <span class="pair">
              {scopes.map((scope) => (
                <Badge key={scope} tone={scope === 'private_keys:read' ? 'warning' : 'quiet'}>
                  {abilities[scope] ?? scope}
                </Badge>
              ))}
            </span>
          ),
        },
        {
          title: 'Allowed by',
          cell: ({ certificates, allowed_networks: networks }) => (
            <>
              {certificates.includes('*') ? 'any certificate' : 'its name'}
              {networks.length > 0 && <div class="beneath wrap">only from {networks.join(', ')}</div>}
            </>
          ),
          isExtra: true,
        },
        {
          title: 'Last used',
          cell: ({ last_used_at, last_used_ip }) => (
            <>
              <Time at={last_used_at} none="never" />
              {last_used_ip !== null && <span class="quiet"> from {last_used_ip}</span>}
            </>
          ),
        },
      ]}
    />
  );
}
