/** The API keys that can read a certificate, and what each is allowed to do. */
import { ButtonLink } from '../../components/button.tsx';
import { Empty } from '../../components/empty.tsx';
import { Problem } from '../../components/notice.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Badge, Status } from '../../components/status.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { useList } from '../../data/resource.ts';
import type { ApiKey } from '../../data/shapes.ts';

const abilities: Readonly<Record<string, string>> = {
  'certificates:read': 'read',
  'private_keys:read': 'private key',
  'renewals:trigger': 'renew',
  'certificates:sign': 'sign',
};

export function CertificateAccess({ name }: { readonly name: string }) {
  const { data, error, reload } = useList<ApiKey>(`/certificates/${encodeURIComponent(name)}/api-keys`);
  if (!data) return error ? <Problem error={error} retry={reload} /> : <Skeleton />;
  if (data.length === 0) {
    return (
      <Empty
        title="No API keys yet"
        actions={
          <ButtonLink
            look="primary"
            needs="operator"
            href={`/api-keys/new?certificate=${encodeURIComponent(name)}`}
          >
            Create API key
          </ButtonLink>
        }
      >
        <p>
          Create an API key for each machine that needs this certificate. You also get the command that
          installs the certificate there.
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
        { title: 'Key', cell: ({ id, name: key }) => <a href={`/api-keys/${id}`}>{key}</a> },
        { title: 'State', cell: ({ state }) => <Status status={state} /> },
        {
          title: 'Permissions',
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
          title: 'Granted by',
          cell: ({ certificates, allowed_networks: networks, client_certificate: bound }) => (
            <>
              {certificates.includes('*') ? 'any certificate' : 'certificate name'}
              {networks.length > 0 && <div class="beneath wrap">only from {networks.join(', ')}</div>}
              {bound !== null && <div class="beneath wrap">only with the client certificate {bound}</div>}
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
