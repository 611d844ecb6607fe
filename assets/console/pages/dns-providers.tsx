/** DNS providers: where the vault creates the challenge records of dns-01, which wildcards require. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { DnsProvider } from '../data/administration-shapes.ts';
import { remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { DnsProviderDialog } from '../forms/dns-provider-dialog.tsx';
import { DnsTestDialog } from '../forms/dns-test-dialog.tsx';

type Opened = { readonly kind: 'add' } | { readonly kind: 'test' | 'remove'; readonly provider: DnsProvider };

export function DnsProvidersPage() {
  const { data, error, reload } = useList<DnsProvider>('/dns-providers');
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  const add = (
    <Button look="primary" needs="admin" onClick={() => setOpened({ kind: 'add' })}>
      Add DNS provider
    </Button>
  );
  return (
    <Page
      title="DNS providers"
      lead="The vault creates DNS records at these providers to complete the dns-01 challenges of ACME CAs."
      actions={data?.length !== 0 && add}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No DNS providers yet" actions={add}>
          <p>ACME CAs require a DNS record for wildcards and for hosts that they cannot reach.</p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="DNS providers"
          rows={data}
          keyOf={({ name }) => name}
          columns={[
            { title: 'Name', cell: ({ name }) => name },
            { title: 'Type', cell: ({ type }) => type },
            { title: 'Zones', cell: ({ zones }) => <span class="wrap">{zones.join(', ')}</span> },
            { title: 'Added', cell: ({ created_at }) => <Time at={created_at} /> },
            {
              title: 'Actions',
              cell: (provider) => (
                <span class="pair">
                  <Button
                    needs="admin"
                    aria-label={`Test ${provider.name}`}
                    onClick={() => setOpened({ kind: 'test', provider })}
                  >
                    Test
                  </Button>
                  <Button
                    look="quiet"
                    needs="admin"
                    aria-label={`Remove ${provider.name}`}
                    onClick={() => setOpened({ kind: 'remove', provider })}
                  >
                    Remove
                  </Button>
                </span>
              ),
            },
          ]}
        />
      )}
      {opened?.kind === 'add' && <DnsProviderDialog onClose={close} onDone={reload} />}
      {opened?.kind === 'test' && <DnsTestDialog provider={opened.provider} onClose={close} />}
      {opened?.kind === 'remove' && (
        <ConfirmDialog
          title={`Remove ${opened.provider.name}?`}
          action="Remove"
          onClose={close}
          onSubmit={async () => {
            await remove(`/dns-providers/${encodeURIComponent(opened.provider.name)}`);
            await reload();
          }}
        >
          <p>
            The vault deletes the credentials. Renewals that need the zones (
            {opened.provider.zones.join(', ')}) will fail.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}
