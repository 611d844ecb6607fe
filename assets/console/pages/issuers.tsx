/** Issuers: the built-in private CA, and the private and ACME CAs that were added. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { ConfirmDialog } from '../components/dialog.tsx';
import { Menu } from '../components/menu.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge } from '../components/status.tsx';
import { type Column, Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import { WebLink } from '../components/web-link.tsx';
import type { Issuer, PrivateCaSettings } from '../data/administration-shapes.ts';
import { remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { IssuerDialog } from '../forms/issuer-dialog.tsx';
import { IssuerTestDialog } from '../forms/issuer-test-dialog.tsx';
import { PrivateCaDialog } from '../forms/private-ca-dialog.tsx';

type Opened =
  | { readonly kind: 'add' | 'add-private' }
  | { readonly kind: 'change' | 'test' | 'remove'; readonly issuer: Issuer };

export function IssuersPage() {
  const { data, error, reload } = useList<Issuer>('/issuers');
  const [opened, setOpened] = useState<Opened>();
  const close = () => setOpened(undefined);
  return (
    <Page
      title="Issuers"
      lead="Private CAs of the vault, and ACME CAs such as Let’s Encrypt."
      actions={
        <>
          <Button needs="admin" onClick={() => setOpened({ kind: 'add-private' })}>
            Add private CA
          </Button>
          <Button look="primary" needs="admin" onClick={() => setOpened({ kind: 'add' })}>
            Add ACME CA
          </Button>
        </>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.map(
        ({ name, paused_until, pause_reason }) =>
          paused_until !== null && (
            <Notice key={name} tone="warning" title={`${name} is paused`}>
              Orders resume <Time at={paused_until} show="both" />. {pause_reason}
            </Notice>
          ),
      )}
      {data && (
        <Table caption="Issuers" rows={data} keyOf={({ name }) => name} columns={columns(setOpened)} />
      )}
      {data?.every(({ type }) => type !== 'acme') && (
        <p class="quiet after-table">
          No ACME CAs yet. Add one to get certificates that browsers and operating systems trust.
        </p>
      )}
      {opened?.kind === 'add' && <IssuerDialog others={data ?? []} onClose={close} onDone={reload} />}
      {opened?.kind === 'add-private' && <PrivateCaDialog onClose={close} onDone={reload} />}
      {opened?.kind === 'change' &&
        (opened.issuer.type === 'acme' ? (
          <IssuerDialog issuer={opened.issuer} others={[]} onClose={close} onDone={reload} />
        ) : (
          <PrivateCaDialog issuer={opened.issuer} onClose={close} onDone={reload} />
        ))}
      {opened?.kind === 'test' && <IssuerTestDialog issuer={opened.issuer} onClose={close} />}
      {opened?.kind === 'remove' && (
        <ConfirmDialog
          title={`Remove ${opened.issuer.name}?`}
          action="Remove"
          onClose={close}
          onSubmit={async () => {
            await remove(`/issuers/${encodeURIComponent(opened.issuer.name)}`);
            await reload();
          }}
        >
          <p>
            First reassign the certificates that this issuer renews. Certificates that it already issued stay.
          </p>
          {opened.issuer.type === 'acme' ? (
            <p>The ACME account stays too. You can delete the account afterwards.</p>
          ) : (
            <p>This destroys the keys and revocation lists of the CA. Only a backup still has them.</p>
          )}
        </ConfirmDialog>
      )}
    </Page>
  );
}

/** The private CA that every vault has. */
const builtIn = 'local-ca';

/** The role for changes: they decide where certificates come from. */
const needs = 'admin' as const;

/** What a private CA issues for. */
function describe(name: string, ca: PrivateCaSettings | null): string {
  const permitted = [...(ca?.permit_domains ?? []), ...(ca?.permit_ips ?? [])];
  if (permitted.length === 0) return name === builtIn ? 'built-in private CA' : 'permits any name';
  return `permits only ${permitted.slice(0, 3).join(', ')}${permitted.length > 3 ? ` and ${permitted.length - 3} more` : ''}`;
}

function columns(open: (opened: Opened) => void): Column<Issuer>[] {
  return [
    {
      title: 'Name',
      cell: ({ name, type, directory_url, private_ca }) => (
        <>
          <div>{name}</div>
          <div class="beneath">{type === 'acme' ? directory_url : describe(name, private_ca)}</div>
        </>
      ),
    },
    {
      title: 'Type',
      cell: ({ type, profile, paused_until }) => (
        <span class="pair">
          <Badge>{type === 'acme' ? 'ACME' : 'private CA'}</Badge>
          {profile !== null && <Badge>profile {profile}</Badge>}
          {paused_until !== null && <Badge tone="warning">paused</Badge>}
        </span>
      ),
    },
    {
      title: 'Account',
      cell: ({ name, type, account, email }) =>
        type === 'acme' ? (
          <span>
            {account === null ? (
              <span class="quiet">none yet</span>
            ) : (
              <a href="/acme-accounts">Account {account}</a>
            )}
            {email !== null && <div class="beneath">{email}</div>}
          </span>
        ) : (
          <a
            href={`/client/cas/${encodeURIComponent(name)}/ca.crt`}
            download={name === builtIn ? 'vault-ca.crt' : `${name}.crt`}
          >
            Download root certificate
          </a>
        ),
    },
    {
      title: 'Terms',
      cell: ({ type, terms_of_service }) =>
        terms_of_service === null ? (
          <span class="quiet">{type === 'acme' ? 'none' : '—'}</span>
        ) : (
          <WebLink to={terms_of_service} label="accepted" />
        ),
    },
    { title: 'Added', cell: ({ created_at }) => <Time at={created_at} />, isExtra: true },
    {
      title: 'Actions',
      cell: (issuer) => (
        <Menu
          label={`Actions for ${issuer.name}`}
          items={[
            ...(issuer.type === 'acme'
              ? [{ label: 'Test', needs, onSelect: () => open({ kind: 'test', issuer }) }]
              : []),
            { label: 'Edit', needs, onSelect: () => open({ kind: 'change', issuer }) },
            ...(issuer.name === builtIn
              ? []
              : [
                  {
                    label: 'Remove',
                    isDanger: true,
                    needs,
                    onSelect: () => open({ kind: 'remove', issuer }),
                  },
                ]),
          ]}
        >
          <span aria-hidden="true">⋯</span>
        </Menu>
      ),
    },
  ];
}
