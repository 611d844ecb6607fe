/** Accounts at ACME CAs: key rollover, deactivation and deletion. */
import { useState } from 'preact/hooks';
import { ButtonLink } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Empty } from '../components/empty.tsx';
import { Menu, type MenuItem } from '../components/menu.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge, Status } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { AcmeAccount } from '../data/administration-shapes.ts';
import { post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';

const dialogs = {
  rollover: {
    label: 'Roll over key',
    title: 'Roll over the key of this account?',
    text: 'The vault generates a new key and registers it with the CA. Certificates and renewals are not affected.',
    act: (id: string) => post(`/acme-accounts/${id}/rollover`),
  },
  deactivate: {
    label: 'Deactivate',
    title: 'Deactivate this account?',
    text: 'The CA closes the account permanently. An issuer that uses it registers a new account at its next order. This cannot be undone.',
    act: (id: string) => post(`/acme-accounts/${id}/deactivate`),
  },
  delete: {
    label: 'Delete',
    title: 'Delete this account?',
    text: 'The vault deletes the account and its key. The CA keeps the account open; deactivate it first to close it there too.',
    act: (id: string) => remove(`/acme-accounts/${id}`),
  },
} as const;

type Opened = { readonly kind: keyof typeof dialogs; readonly account: AcmeAccount };

export function AcmeAccountsPage() {
  const { data, error, reload } = useList<AcmeAccount>('/acme-accounts');
  const [opened, setOpened] = useState<Opened>();
  const confirmed = opened && dialogs[opened.kind];
  return (
    <Page
      title="ACME accounts"
      lead="The vault registers an account when it first orders a certificate from an ACME CA."
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty
          title="No ACME accounts yet"
          actions={
            <ButtonLink look="primary" href="/issuers">
              View issuers
            </ButtonLink>
          }
        >
          <p>
            Add an ACME CA such as Let’s Encrypt as an issuer. The vault registers the account automatically.
          </p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="ACME accounts"
          rows={data}
          keyOf={({ id }) => id}
          columns={columns((kind, account) => setOpened({ kind, account }))}
        />
      )}
      {opened && confirmed && (
        <ConfirmDialog
          title={confirmed.title}
          action={confirmed.label}
          onClose={() => setOpened(undefined)}
          onSubmit={async () => {
            await confirmed.act(opened.account.id);
            await reload();
          }}
        >
          <p>
            Account {opened.account.id} of {opened.account.issuer} at {hostOf(opened.account.directory_url)}.
          </p>
          <p>{confirmed.text}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function columns(open: (kind: Opened['kind'], account: AcmeAccount) => void): Column<AcmeAccount>[] {
  return [
    {
      title: 'Account',
      cell: ({ id, directory_url }) => (
        <>
          <div>Account {id}</div>
          <div class="beneath">{hostOf(directory_url)}</div>
        </>
      ),
    },
    { title: 'Status', cell: ({ status }) => <Status status={status} /> },
    {
      title: 'Use',
      cell: ({ current, issuer }) =>
        current ? (
          <div>
            <Badge tone="accent">current</Badge>
            <div class="beneath">
              Used by issuer {issuer}. To delete the account, first remove the issuer or change its directory.
            </div>
          </div>
        ) : (
          <span class="quiet">Not used; registered by {issuer}</span>
        ),
    },
    { title: 'Email', cell: ({ email }) => email ?? <span class="quiet">—</span> },
    { title: 'Registered', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      title: 'Actions',
      cell: (account) => {
        const item = (kind: Opened['kind'], isDanger = true): MenuItem => ({
          label: dialogs[kind].label,
          isDanger,
          needs: 'admin',
          onSelect: () => open(kind, account),
        });
        const items = [
          ...(account.status === 'valid' ? [item('rollover', false), item('deactivate')] : []),
          ...(account.current ? [] : [item('delete')]),
        ];
        if (items.length === 0) return <span class="quiet">—</span>;
        return (
          <Menu label={`Actions for account ${account.id}`} items={items}>
            <span aria-hidden="true">⋯</span>
          </Menu>
        );
      },
    },
  ];
}

function hostOf(url: string): string {
  return URL.parse(url)?.host ?? url;
}
