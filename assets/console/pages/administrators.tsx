/** Administrators: the people who can sign in to this console. */
import { useState } from 'preact/hooks';
import { type Role, roles } from '../../../src/base/role.ts';
import { Button } from '../components/button.tsx';
import { ConfirmDialog, FormDialog } from '../components/dialog.tsx';
import { TextField } from '../components/field.tsx';
import { Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { Select } from '../components/select.tsx';
import { Skeleton } from '../components/spinner.tsx';
import { Badge } from '../components/status.tsx';
import { Table } from '../components/table.tsx';
import { Time } from '../components/time.tsx';
import type { Administrator } from '../data/administration-shapes.ts';
import { patch, post, remove } from '../data/api.ts';
import { useList } from '../data/resource.ts';
import { useSession } from '../data/session.ts';
import {} from '../forms/labels-field.tsx';
import { labelsIn } from '../text/label-list.ts';

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
              cell: ({ role, reach }) => (
                <>
                  {role}
                  {reach.length > 0 && <div class="quiet small">Only {reach.join(', ')}</div>}
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

type Rights = { readonly role: Role; readonly reach: string };

/** The role admin reaches everything. */
function RightsFields({
  rights,
  error,
  onRights,
}: {
  readonly rights: Rights;
  readonly error: string | undefined;
  readonly onRights: (rights: Rights) => void;
}) {
  const { role, reach } = rights;
  return (
    <>
      <Select
        label="Role"
        value={role}
        choices={roles.map((one) => ({ value: one, label: roleNames[one] }))}
        onValue={(one) => onRights({ ...rights, role: one as Role })}
      />
      {role !== 'admin' && (
        <TextField
          label="Reach (optional)"
          hint="Labels such as team=web, separated by commas. They then see and change only what has one of them."
          value={reach}
          error={error}
          onValue={(text) => onRights({ ...rights, reach: text })}
        />
      )}
    </>
  );
}

function bodyOf({ role, reach }: Rights) {
  return { role, reach: role === 'admin' ? [] : labelsIn(reach) };
}

const roleNames: Readonly<Record<Role, string>> = {
  viewer: 'viewer: reads everything but private keys',
  operator: 'operator: also manages certificates',
  admin: 'admin: may do everything',
};

function RoleDialog({
  administrator,
  onClose,
  onDone,
}: {
  readonly administrator: Administrator;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}) {
  const { role, reach } = administrator;
  const [rights, setRights] = useState<Rights>({ role, reach: reach.join(', ') });
  return (
    <FormDialog
      title={`Change the role of ${administrator.name}`}
      action="Change role"
      onClose={onClose}
      onSubmit={async () => {
        await patch(pathOf(administrator), bodyOf(rights));
        await onDone();
      }}
    >
      {(errorOf) => <RightsFields rights={rights} error={errorOf('reach')} onRights={setRights} />}
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
  const [rights, setRights] = useState<Rights>({ role: 'admin', reach: '' });
  return (
    <FormDialog
      title="Add administrator"
      action="Add"
      onClose={onClose}
      onSubmit={async () => {
        await post('/administrators', { name, password, ...bodyOf(rights) });
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
          <RightsFields rights={rights} error={errorOf('reach')} onRights={setRights} />
        </>
      )}
    </FormDialog>
  );
}
