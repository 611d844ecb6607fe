/** API keys: what each may read, when it was last used, and how to rotate or revoke it. */
import { useState } from 'preact/hooks';
import { ButtonLink } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Menu } from '../components/menu.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge, Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { post, remove } from '../data/api.ts';
import { useDeployments } from '../data/deployments.ts';
import { useList } from '../data/resource.ts';
import type { ApiKey } from '../data/shapes.ts';
import { HostNames } from '../fleet/host-names.tsx';
import { hostsOf, hostsText } from '../fleet/hosts.ts';
import { RotateApiKeyDialog } from './rotate-api-key.tsx';

type Opened = { readonly kind: 'rotate' | 'revoke' | 'delete'; readonly apiKey: ApiKey };

export function ApiKeysPage() {
  const { data, error, reload } = useList<ApiKey>('/api-keys');
  const [opened, setOpened] = useState<Opened>();
  const newKey = (
    <ButtonLink look="primary" needs="operator" href="/api-keys/new">
      Create API key
    </ButtonLink>
  );
  return (
    <Page
      title="API keys"
      lead="Machines authenticate with API keys to download their certificates. The vault stores only a hash of each key."
      actions={data?.length !== 0 && newKey}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No API keys yet" actions={newKey}>
          <p>
            An API key lets a machine download the certificates that you select. After creating one, you get
            the command that installs them.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="API keys"
          rows={data.toReversed()}
          keyOf={({ id }) => id}
          columns={columns(setOpened)}
        />
      )}
      {opened && <Confirmation {...opened} onClose={() => setOpened(undefined)} onDone={reload} />}
    </Page>
  );
}

const scopeWords: Readonly<Record<string, string>> = {
  'certificates:read': 'certificates',
  'private_keys:read': 'private keys',
  'renewals:trigger': 'renewals',
  'certificates:sign': 'signing requests',
};

function columns(onOpen: (opened: Opened) => void): Column<ApiKey>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name, prefix, previous_expires_at }) => (
        <>
          <a href={`/api-keys/${id}`}>{name}</a>
          <div class="mono beneath whole">{prefix}…</div>
          {previous_expires_at !== null && (
            <div class="beneath">
              old key valid until <Time at={previous_expires_at} show="absolute" />
            </div>
          )}
        </>
      ),
    },
    { title: 'State', cell: ({ state }) => <Status status={state} /> },
    {
      title: 'Certificates',
      cell: ({ certificates, certificate_labels: labels }) => (
        <span class="wrap" title={[...certificates, ...labels].join(', ')}>
          {certificates[0] === '*' ? 'any' : shortList([...certificates, ...labels])}
        </span>
      ),
    },
    {
      title: 'Permissions',
      cell: ({ scopes, role, allowed_networks: networks, client_certificate: bound }) => (
        <span>
          {role !== null && <Badge tone="accent">{role}</Badge>}{' '}
          <span title={scopes.join(' ')}>{scopes.map((scope) => scopeWords[scope] ?? scope).join(', ')}</span>
          {networks.length > 0 && (
            <div class="beneath wrap" title={networks.join(', ')}>
              only from {shortList(networks)}
            </div>
          )}
          {bound !== null && <div class="beneath wrap">only with the client certificate {bound}</div>}
        </span>
      ),
    },
    {
      title: 'Last used',
      cell: ({ last_used_at, last_used_ip }) => (
        <span>
          <Time at={last_used_at} none="never" />
          {last_used_ip !== null && <div class="quiet small">from {last_used_ip}</div>}
        </span>
      ),
    },
    {
      title: 'Expires',
      cell: ({ expires_at }) => <Time at={expires_at} none="never" />,
    },
    {
      title: 'Actions',
      cell: (apiKey) => (
        <Menu
          label={`Actions for ${apiKey.name}`}
          items={[
            ...(apiKey.state === 'active'
              ? [
                  { label: 'Show installer command', href: `/api-keys/${apiKey.id}/install` },
                  {
                    label: 'Rotate',
                    needs: 'admin' as const,
                    onSelect: () => onOpen({ kind: 'rotate' as const, apiKey }),
                  },
                ]
              : []),
            {
              label: 'View audit log',
              href: `/audit-log?actor=${encodeURIComponent(`api-key:${apiKey.id}:${apiKey.name}`)}`,
            },
            apiKey.state === 'revoked'
              ? {
                  label: 'Delete',
                  isDanger: true,
                  needs: 'admin',
                  onSelect: () => onOpen({ kind: 'delete', apiKey }),
                }
              : {
                  label: 'Revoke',
                  isDanger: true,
                  needs: 'operator',
                  onSelect: () => onOpen({ kind: 'revoke', apiKey }),
                },
          ]}
        >
          <span aria-hidden="true">⋯</span>
        </Menu>
      ),
    },
  ];
}

function shortList(names: readonly string[]): string {
  return names.length > 3 ? `${names.slice(0, 2).join(', ')} and ${names.length - 2} more` : names.join(', ');
}

function Confirmation({
  kind,
  apiKey,
  onClose,
  onDone,
}: Opened & { readonly onClose: () => void; readonly onDone: () => Promise<void> }) {
  const { id, name, last_used_at } = apiKey;
  if (kind === 'rotate') return <RotateApiKeyDialog apiKey={apiKey} onClose={onClose} onDone={onDone} />;
  if (kind === 'delete') {
    return (
      <ConfirmDialog
        title={`Delete ${name}?`}
        action="Delete"
        onClose={onClose}
        onSubmit={async () => {
          await remove(`/api-keys/${id}`);
          await onDone();
        }}
      >
        <p>The key is removed from this list. Its actions stay in the audit log.</p>
      </ConfirmDialog>
    );
  }
  return (
    <ConfirmDialog
      title={`Revoke ${name}?`}
      action="Revoke"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/api-keys/${id}/revoke`);
        await onDone();
      }}
    >
      <p>
        The vault rejects the key from the next request on. Machines that use it keep the certificates they
        have. This cannot be undone.
      </p>
      <Hosts id={id} />
      <p>
        Last used: <Time at={last_used_at} none="never" show="both" />
      </p>
    </ConfirmDialog>
  );
}

/** The hosts that could no longer renew. */
function Hosts({ id }: { readonly id: number }) {
  const { data } = useDeployments(`/deployments?api_key=${id}`);
  if (!data?.isWhole || data.items.length === 0) return null;
  const hosts = hostsOf(data.items).map(({ name }) => name);
  return (
    <p>
      {hostsText(hosts.length)} {hosts.length === 1 ? 'uses' : 'use'} it: <HostNames hosts={hosts} />.
    </p>
  );
}
