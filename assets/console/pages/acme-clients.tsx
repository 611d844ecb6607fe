/** ACME clients: what each program may order, when it was last used, and how to rotate or revoke it. */
import { useRef, useState } from 'preact/hooks';
import { Button, ButtonLink } from '../components/button.tsx';
import { ConfirmDialog, Dialog, FormDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Menu } from '../components/menu.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { AcmeClient, CreatedAcmeClient } from '../data/administration-shapes.ts';
import { post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { AcmeClientKey } from '../forms/acme-client-key.tsx';

type Opened = { readonly kind: 'rotate' | 'revoke' | 'delete'; readonly client: AcmeClient };

export function AcmeClientsPage() {
  const { data, error, reload } = useList<AcmeClient>('/acme-clients');
  const [opened, setOpened] = useState<Opened>();
  const newClient = (
    <ButtonLink look="primary" needs="admin" href="/acme-clients/new">
      Create ACME client
    </ButtonLink>
  );
  return (
    <Page
      title="ACME clients"
      lead="Programs that order certificates from the vault by ACME, such as Caddy, Traefik or certbot. They keep their private keys."
      actions={data?.length !== 0 && newClient}
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty title="No ACME clients yet" actions={newClient}>
          <p>
            An ACME client lets a program order certificates for the names that you permit. After creating
            one, you get the lines for its configuration.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="ACME clients"
          rows={data.toReversed()}
          keyOf={({ id }) => id}
          columns={columns(setOpened)}
        />
      )}
      {opened && <Confirmation {...opened} onClose={() => setOpened(undefined)} onDone={reload} />}
    </Page>
  );
}

function columns(onOpen: (opened: Opened) => void): Column<AcmeClient>[] {
  return [
    {
      title: 'Name',
      cell: ({ name, kid }) => (
        <>
          <div>{name}</div>
          <div class="mono beneath whole">{kid}</div>
        </>
      ),
    },
    { title: 'State', cell: ({ state }) => <Status status={state} /> },
    {
      title: 'May order',
      cell: ({ domains, allowed_networks: networks }) => (
        <span>
          <span class="wrap" title={domains.join(', ')}>
            {shortList(domains)}
          </span>
          {networks.length > 0 && (
            <div class="beneath wrap" title={networks.join(', ')}>
              only from {shortList(networks)}
            </div>
          )}
        </span>
      ),
    },
    {
      title: 'Issuers',
      cell: ({ issuers, validation }) => (
        <span>
          {issuers.join(', ')}
          {validation.length > 0 && <div class="beneath wrap">validated by {validation.join(', ')}</div>}
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
    { title: 'Expires', cell: ({ expires_at }) => <Time at={expires_at} none="never" /> },
    {
      title: 'Actions',
      cell: (client) => (
        <Menu
          label={`Actions for ${client.name}`}
          items={[
            ...(client.state === 'active'
              ? [
                  { label: 'Show setup', href: `/acme-clients/${client.id}/setup` },
                  {
                    label: 'Rotate',
                    needs: 'admin' as const,
                    onSelect: () => onOpen({ kind: 'rotate' as const, client }),
                  },
                ]
              : []),
            {
              label: 'View audit log',
              href: `/audit-log?actor=${encodeURIComponent(`acme-client:${client.id}:${client.name}`)}`,
            },
            client.state === 'revoked'
              ? {
                  label: 'Delete',
                  isDanger: true,
                  needs: 'admin',
                  onSelect: () => onOpen({ kind: 'delete', client }),
                }
              : {
                  label: 'Revoke',
                  isDanger: true,
                  needs: 'admin',
                  onSelect: () => onOpen({ kind: 'revoke', client }),
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

type Ending = { readonly onClose: () => void; readonly onDone: () => Promise<void> };

function Confirmation({ kind, client, onClose, onDone }: Opened & Ending) {
  const { id, name, last_used_at } = client;
  if (kind === 'rotate') return <RotateDialog client={client} onClose={onClose} onDone={onDone} />;
  if (kind === 'delete') {
    return (
      <ConfirmDialog
        title={`Delete ${name}?`}
        action="Delete"
        onClose={onClose}
        onSubmit={async () => {
          await remove(`/acme-clients/${id}`);
          await onDone();
        }}
      >
        <p>
          The client is removed from this list with its accounts and orders. Its certificates and its actions
          in the audit log stay.
        </p>
      </ConfirmDialog>
    );
  }
  return (
    <ConfirmDialog
      title={`Revoke ${name}?`}
      action="Revoke"
      onClose={onClose}
      onSubmit={async () => {
        await post(`/acme-clients/${id}/revoke`);
        await onDone();
      }}
    >
      <p>
        The vault rejects the client and its accounts from the next request on. Its certificates stay valid
        until they expire. This cannot be undone.
      </p>
      <p>
        Last used: <Time at={last_used_at} none="never" show="both" />
      </p>
    </ConfirmDialog>
  );
}

function RotateDialog({ client: { id, name }, onClose, onDone }: Ending & { readonly client: AcmeClient }) {
  const [rotated, setRotated] = useState<CreatedAcmeClient>();
  // The form closes when it is done, but the new key must stay visible.
  const isRotated = useRef(false);
  if (rotated !== undefined) {
    return (
      <Dialog title={`New key of ${name}`} onClose={onClose}>
        <AcmeClientKey created={rotated} />
        <div class="dialog-buttons">
          <Button look="primary" onClick={onClose}>
            Done
          </Button>
        </div>
      </Dialog>
    );
  }
  return (
    <FormDialog
      title={`Rotate ${name}?`}
      action="Rotate"
      onClose={() => {
        if (!isRotated.current) onClose();
      }}
      onSubmit={async () => {
        const created = await post<CreatedAcmeClient>(`/acme-clients/${id}/rotate`);
        isRotated.current = true;
        setRotated(created);
        await onDone();
      }}
    >
      {() => (
        <div class="prose">
          <p>
            The vault creates a new key, and the old one registers no accounts from now on. Accounts that
            exist keep working.
          </p>
        </div>
      )}
    </FormDialog>
  );
}
