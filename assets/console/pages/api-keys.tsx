/** API keys: what each may read, when it was last used, and how to rotate or revoke it. */
import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { ButtonLink } from '../components/button.tsx';
import { Empty } from '../components/empty.tsx';
import { Menu } from '../components/menu.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge, Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Tabs } from '../components/tabs.tsx';
import { Time } from '../components/time.tsx';
import type { Enrollment } from '../data/administration-shapes.ts';
import { type Resource, useList } from '../data/resource.ts';
import type { ApiKey } from '../data/shapes.ts';
import { usePlace } from '../router.ts';
import { Confirmation, type Opened } from './api-key-ending.tsx';
import { EnrollmentsTab } from './enrollments/enrollments.tsx';

export function ApiKeysPage() {
  const keys = useList<ApiKey>('/api-keys');
  const enrollments = useList<Enrollment>('/enrollments');
  const isOfKeys = usePlace().query.get('tab') !== 'enrollments';
  const create = isOfKeys ? (
    <ButtonLink look="primary" needs="operator" href="/api-keys/new">
      Create API key
    </ButtonLink>
  ) : (
    <ButtonLink look="primary" needs="operator" href="/api-keys/enrollments/new">
      Create enrollment
    </ButtonLink>
  );
  return (
    <Page
      title="API keys"
      lead="Machines authenticate with API keys to download their certificates. The vault stores only a hash of each key."
      actions={(isOfKeys ? keys : enrollments).data?.length !== 0 && create}
    >
      <Tabs
        label="API keys"
        tabs={[
          {
            id: 'keys',
            label: 'Keys',
            content: () => <KeysTab keys={keys} enrollments={enrollments.data ?? []} create={create} />,
          },
          {
            id: 'enrollments',
            label: 'Enrollments',
            content: () => <EnrollmentsTab enrollments={enrollments} create={create} />,
          },
        ]}
      />
    </Page>
  );
}

function KeysTab({
  keys: { data, error, reload },
  enrollments,
  create,
}: {
  readonly keys: Resource<readonly ApiKey[]>;
  readonly enrollments: readonly Enrollment[];
  /** The button that creates a key. */
  readonly create: ComponentChildren;
}) {
  const [opened, setOpened] = useState<Opened>();
  const names = useMemo(() => new Map(enrollments.map(({ id, name }) => [id, name])), [enrollments]);
  return (
    <>
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No API keys yet" actions={create}>
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
          columns={columns(setOpened, names)}
        />
      )}
      {opened && <Confirmation {...opened} onClose={() => setOpened(undefined)} onDone={reload} />}
    </>
  );
}

const scopeWords: Readonly<Record<string, string>> = {
  'certificates:read': 'certificates',
  'private_keys:read': 'private keys',
  'renewals:trigger': 'renewals',
  'certificates:sign': 'signing requests',
};

function columns(
  onOpen: (opened: Opened) => void,
  enrollments: ReadonlyMap<number, string>,
): Column<ApiKey>[] {
  return [
    {
      title: 'Name',
      cell: ({ id, name, prefix, previous_expires_at, enrollment }) => (
        <>
          <a href={`/api-keys/${id}`}>{name}</a>
          <div class="mono beneath whole">{prefix}…</div>
          {enrollment !== null && (
            <div class="beneath">
              enrolled with {enrollments.get(enrollment) ?? `enrollment ${enrollment}`}
            </div>
          )}
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
