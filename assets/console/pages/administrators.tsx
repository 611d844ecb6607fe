/** Administrators: the people who can sign in to this console. */
import { useState } from 'preact/hooks';
import { Button } from '../components/button.tsx';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge } from '../components/status.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { Administrator } from '../data/administration-shapes.ts';
import { post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { useSession } from '../data/session.ts';

export function AdministratorsPage() {
  const { data, error, reload } = useList<Administrator>('/administrators');
  const [opened, setOpened] = useState<'add' | Administrator>();
  const self = useSession()?.name;
  const close = () => setOpened(undefined);
  return (
    <Page
      title="Administrators"
      lead="People who can sign in to this console, with full access."
      actions={
        <Button look="primary" onClick={() => setOpened('add')}>
          Add administrator
        </Button>
      }
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && (
        <Table
          caption="Administrators"
          rows={data}
          keyOf={({ name }) => name}
          columns={[
            {
              title: 'Name',
              cell: ({ name }) => (
                <span class="pair">
                  {name}
                  {name === self && <Badge tone="accent">you</Badge>}
                </span>
              ),
            },
            { title: 'Added', cell: ({ created_at }) => <Time at={created_at} /> },
            {
              title: 'Last signed in',
              cell: ({ last_signed_in_at }) => <Time at={last_signed_in_at} none="never" />,
            },
            {
              title: 'Actions',
              cell: (administrator) =>
                data.length === 1 ? (
                  <span class="quiet">Last administrator; cannot be removed</span>
                ) : (
                  <Button
                    look="quiet"
                    aria-label={`Remove ${administrator.name}`}
                    onClick={() => setOpened(administrator)}
                  >
                    Remove
                  </Button>
                ),
            },
          ]}
        />
      )}
      {opened === 'add' && <AddDialog onClose={close} onDone={reload} />}
      {opened !== undefined && opened !== 'add' && (
        <ConfirmDialog
          title={`Remove ${opened.name}?`}
          action="Remove"
          word={opened.name}
          onClose={close}
          onSubmit={async () => {
            await remove(`/administrators/${encodeURIComponent(opened.name)}`);
            await reload();
          }}
        >
          <p>
            {opened.name === self
              ? 'This is your own account. You will be signed out of all sessions.'
              : 'The administrator will be signed out of all sessions. Recorded actions stay in the audit log.'}
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function AddDialog({
  onClose,
  onDone,
}: {
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  return (
    <FormDialog
      title="Add administrator"
      action="Add"
      onClose={onClose}
      onSubmit={async () => {
        await post('/administrators', { name, password });
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <TextField label="Name" value={name} error={errorOf('name')} onValue={setName} />
          <TextField
            label="Password"
            type="password"
            hint="At least 12 characters, not a common password. The administrator can change it after signing in."
            value={password}
            autocomplete="new-password"
            error={errorOf('password')}
            onValue={setPassword}
          />
        </>
      )}
    </FormDialog>
  );
}
