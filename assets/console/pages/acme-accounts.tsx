/** Accounts at ACME CAs: their keys, and the end of those that no issuer uses any more. */
import { useState } from 'preact/hooks';
import type { AcmeAccount } from '../administration-shapes.ts';
import { post, remove } from '../api.ts';
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
import { useList } from '../resource.ts';

const questions = {
  rollover: {
    label: 'Change its key',
    title: 'Give this account a new key?',
    text: 'The vault makes a new key and tells the CA. Certificates and renewals go on as before.',
    act: (id: string) => post(`/acme-accounts/${id}/rollover`),
  },
  deactivate: {
    label: 'Deactivate',
    title: 'Deactivate this account?',
    text: 'The CA closes it for ever. An issuer that uses it registers another when it needs one. This cannot be taken back.',
    act: (id: string) => post(`/acme-accounts/${id}/deactivate`),
  },
  delete: {
    label: 'Delete',
    title: 'Delete this account?',
    text: 'The vault forgets the account and its key. The CA is not told: deactivate it first if nobody shall use it again.',
    act: (id: string) => remove(`/acme-accounts/${id}`),
  },
} as const;

type Question = { readonly kind: keyof typeof questions; readonly account: AcmeAccount };

export function AcmeAccountsPage() {
  const { data, error, reload } = useList<AcmeAccount>('/acme-accounts');
  const [question, setQuestion] = useState<Question>();
  const asked = question && questions[question.kind];
  return (
    <Page
      title="ACME accounts"
      lead="The vault registers an account the first time that it asks an ACME CA for a certificate."
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data?.length === 0 && (
        <Empty
          title="No ACME accounts yet"
          actions={
            <ButtonLink look="primary" href="/issuers">
              Go to the issuers
            </ButtonLink>
          }
        >
          <p>Add an ACME CA such as Let’s Encrypt as an issuer; its account follows by itself.</p>
        </Empty>
      )}
      {data !== undefined && data.length > 0 && (
        <Table
          caption="ACME accounts"
          rows={data}
          keyOf={({ id }) => id}
          columns={columns((kind, account) => setQuestion({ kind, account }))}
        />
      )}
      {question && asked && (
        <ConfirmDialog
          title={asked.title}
          action={asked.label}
          onClose={() => setQuestion(undefined)}
          onSubmit={async () => {
            await asked.act(question.account.id);
            await reload();
          }}
        >
          <p>
            Account {question.account.id} of {question.account.issuer} at{' '}
            {hostOf(question.account.directory_url)}.
          </p>
          <p>{asked.text}</p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function columns(ask: (kind: Question['kind'], account: AcmeAccount) => void): Column<AcmeAccount>[] {
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
              Issuer {issuer} uses it, so it cannot be deleted. Remove the issuer or give it another directory
              first.
            </div>
          </div>
        ) : (
          <span class="quiet">No issuer uses it; registered by {issuer}</span>
        ),
    },
    { title: 'Email', cell: ({ email }) => email ?? <span class="quiet">—</span> },
    { title: 'Registered', cell: ({ created_at }) => <Time at={created_at} /> },
    {
      title: 'Actions',
      cell: (account) => {
        const item = (kind: Question['kind'], isDanger = true): MenuItem => ({
          label: questions[kind].label,
          isDanger,
          onSelect: () => ask(kind, account),
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
