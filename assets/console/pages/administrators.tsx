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
import { patch, post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { useSession } from '../data/session.ts';
import { blankRights, rightsBody, rightsDraft } from '../forms/rights-draft.ts';
import { RightsFields } from '../forms/rights-fields.tsx';

type Opened =
  | { readonly kind: 'add' }
  | { readonly kind: 'role' | 'factors' | 'remove'; readonly administrator: Administrator };

export function AdministratorsPage() {
  const { data, error, reload } = useList<Administrator>('/administrators');
  const [opened, setOpened] = useState<Opened>();
  const self = useSession()?.name;
  const close = () => setOpened(undefined);
  return (
    <Page
      title="Administrators"
      lead="People who can sign in to this console. A viewer reads everything but private keys, an operator also manages certificates, an admin may do everything."
      actions={
        <Button look="primary" needs="admin" onClick={() => setOpened({ kind: 'add' })}>
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
            {
              title: 'Role',
              cell: ({ role, reach, profiles }) => (
                <>
                  {role}
                  {reach.length > 0 && <div class="quiet small">Only {reach.join(', ')}</div>}
                  {profiles.length > 0 && (
                    <div class="quiet small">Issues only with {profiles.join(', ')}</div>
                  )}
                </>
              ),
            },
            {
              title: 'Signs in with',
              cell: ({ sign_in, has_second_factor }) =>
                sign_in === 'oidc' ? (
                  <>
                    OpenID Connect
                    <div class="quiet small">The provider decides the role</div>
                  </>
                ) : has_second_factor ? (
                  'password and second factor'
                ) : (
                  'password'
                ),
            },
            { title: 'Added', cell: ({ created_at }) => <Time at={created_at} /> },
            {
              title: 'Last signed in',
              cell: ({ last_signed_in_at }) => <Time at={last_signed_in_at} none="never" />,
            },
            {
              title: 'Actions',
              cell: (administrator) => (
                <span class="pair">
                  {administrator.has_second_factor && administrator.name !== self && (
                    <Button
                      needs="admin"
                      aria-label={`Clear second factors of ${administrator.name}`}
                      onClick={() => setOpened({ kind: 'factors', administrator })}
                    >
                      Clear second factors
                    </Button>
                  )}
                  {isLastAdmin(administrator, data) ? (
                    <span class="quiet">Last one with the role admin and a password</span>
                  ) : (
                    <>
                      {administrator.sign_in === 'password' && (
                        <Button
                          needs="admin"
                          aria-label={`Change role of ${administrator.name}`}
                          onClick={() => setOpened({ kind: 'role', administrator })}
                        >
                          Change role
                        </Button>
                      )}
                      <Button
                        look="quiet"
                        needs="admin"
                        aria-label={`Remove ${administrator.name}`}
                        onClick={() => setOpened({ kind: 'remove', administrator })}
                      >
                        Remove
                      </Button>
                    </>
                  )}
                </span>
              ),
            },
          ]}
        />
      )}
      {opened?.kind === 'add' && <AddDialog onClose={close} onDone={reload} />}
      {opened?.kind === 'role' && (
        <RoleDialog administrator={opened.administrator} onClose={close} onDone={reload} />
      )}
      {opened?.kind === 'factors' && (
        <ConfirmDialog
          title={`Clear the second factors of ${opened.administrator.name}?`}
          action="Clear second factors"
          onClose={close}
          onSubmit={async () => {
            await remove(`${pathOf(opened.administrator)}/second-factors`);
            await reload();
          }}
        >
          <p>
            For someone who has lost their passkeys, their app and their recovery codes. They are signed out
            of all sessions, and their password is enough for the next sign-in.
          </p>
        </ConfirmDialog>
      )}
      {opened?.kind === 'remove' && (
        <ConfirmDialog
          title={`Remove ${opened.administrator.name}?`}
          action="Remove"
          word={opened.administrator.name}
          onClose={close}
          onSubmit={async () => {
            await remove(pathOf(opened.administrator));
            await reload();
          }}
        >
          <p>
            {opened.administrator.name === self
              ? 'This is your own account. You will be signed out of all sessions.'
              : 'The administrator will be signed out of all sessions. Recorded actions stay in the audit log.'}
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

/** The vault keeps one with a password, who can give others this role. */
function isLastAdmin(administrator: Administrator, all: readonly Administrator[]): boolean {
  const isLocalAdmin = ({ role, sign_in }: Administrator) => role === 'admin' && sign_in === 'password';
  return isLocalAdmin(administrator) && all.filter(isLocalAdmin).length === 1;
}

function pathOf({ name }: Administrator): string {
  return `/administrators/${encodeURIComponent(name)}`;
}

function RoleDialog({
  administrator,
  onClose,
  onDone,
}: {
  readonly administrator: Administrator;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const [rights, setRights] = useState(() => rightsDraft(administrator));
  return (
    <FormDialog
      title={`Change the role of ${administrator.name}`}
      action="Change role"
      onClose={onClose}
      onSubmit={async () => {
        await patch(pathOf(administrator), rightsBody(rights));
        await onDone();
      }}
    >
      {(errorOf) => <RightsFields rights={rights} errorOf={errorOf} onRights={setRights} />}
    </FormDialog>
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
  const [rights, setRights] = useState(blankRights);
  return (
    <FormDialog
      title="Add administrator"
      action="Add"
      onClose={onClose}
      onSubmit={async () => {
        await post('/administrators', { name, password, ...rightsBody(rights) });
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
          <RightsFields rights={rights} errorOf={errorOf} onRights={setRights} />
        </>
      )}
    </FormDialog>
  );
}
