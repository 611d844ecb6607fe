/** How the person signs in: password, passkeys, authenticator app and recovery codes. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { Notice, Problem } from '../../components/notice.tsx';
import { Page, Section } from '../../components/page.tsx';
import { Skeleton } from '../../components/spinner.tsx';
import { Table } from '../../components/table.tsx';
import { Time } from '../../components/time.tsx';
import { WebLink } from '../../components/web-link.tsx';
import type { Passkey, SecondFactors } from '../../data/administration-shapes.ts';
import { canUsePasskeys } from '../../data/passkeys.ts';
import { useResource } from '../../data/resource.ts';
import { useSession } from '../../data/session.ts';
import {
  AddPasskeyDialog,
  AppDialog,
  RecoveryCodesDialog,
  RemoveFactorDialog,
  RenamePasskeyDialog,
} from './factor-dialogs.tsx';

export function SignInMethodsPage() {
  if (useSession()?.sign_in === 'oidc') {
    return (
      <Page title="Sign-in methods">
        <p>You sign in by OpenID Connect. The identity provider asks for second factors.</p>
      </Page>
    );
  }
  return <LocalMethods />;
}

function LocalMethods() {
  const { data, error, reload } = useResource<SecondFactors>('/second-factors');
  return (
    <Page
      title="Sign-in methods"
      lead="With a second factor, your password alone no longer opens the vault. Passkeys replace both."
    >
      {error && <Problem error={error} retry={reload} />}
      {!data && !error && <Skeleton />}
      {data && (
        <>
          <FactorSections factors={data} reload={reload} />
          <Section
            title="Password"
            actions={<ButtonLink href="/account/password">Change password</ButtonLink>}
          >
            <p class="quiet">Changing it signs you out of your other sessions.</p>
          </Section>
        </>
      )}
    </Page>
  );
}

type Opened =
  | { readonly kind: 'add' | 'app' | 'remove-app' | 'codes' }
  | { readonly kind: 'rename' | 'remove'; readonly passkey: Passkey };

export function FactorSections({
  factors,
  reload,
}: {
  readonly factors: SecondFactors;
  readonly reload: () => Promise<void>;
}) {
  const [opened, setOpened] = useState<Opened>();
  const { passkeys, totp, recovery_codes, required } = factors;
  const props = { onClose: () => setOpened(undefined), onDone: reload };
  const count = passkeys.length + (totp ? 1 : 0);
  const isLast = required && count === 1;
  return (
    <>
      <Section
        title="Passkeys"
        actions={<AddPasskey at={factors.passkeys_at} onAdd={() => setOpened({ kind: 'add' })} />}
      >
        {passkeys.length === 0 ? (
          <p class="quiet">No passkeys yet. A passkey signs you in with a fingerprint, a face or a PIN.</p>
        ) : (
          <Table
            caption="Passkeys"
            rows={passkeys}
            keyOf={({ id }) => id}
            columns={[
              { title: 'Name', cell: ({ name }) => name },
              { title: 'Added', cell: ({ created_at }) => <Time at={created_at} /> },
              { title: 'Last used', cell: ({ last_used_at }) => <Time at={last_used_at} none="never" /> },
              {
                title: 'Actions',
                cell: (passkey) => (
                  <span class="pair">
                    <Button
                      aria-label={`Rename ${passkey.name}`}
                      onClick={() => setOpened({ kind: 'rename', passkey })}
                    >
                      Rename
                    </Button>
                    {!isLast && (
                      <Button
                        look="quiet"
                        aria-label={`Remove ${passkey.name}`}
                        onClick={() => setOpened({ kind: 'remove', passkey })}
                      >
                        Remove
                      </Button>
                    )}
                  </span>
                ),
              },
            ]}
          />
        )}
      </Section>
      <Section
        title="Authenticator app"
        actions={
          <span class="pair">
            <Button onClick={() => setOpened({ kind: 'app' })}>
              {totp ? 'Replace app' : 'Set up authenticator app'}
            </Button>
            {totp && !isLast && (
              <Button look="quiet" onClick={() => setOpened({ kind: 'remove-app' })}>
                Remove app
              </Button>
            )}
          </span>
        }
      >
        <p class="quiet">
          {totp ? (
            <>
              Set up <Time at={totp.created_at} />, last used <Time at={totp.last_used_at} none="never" />.
            </>
          ) : (
            'No app yet. After your password, you type a code that an app on your phone shows.'
          )}
        </p>
      </Section>
      {count > 0 && (
        <Section
          title="Recovery codes"
          actions={<Button onClick={() => setOpened({ kind: 'codes' })}>Create new codes</Button>}
        >
          {recovery_codes === 0 ? (
            <Notice tone="warning">
              You have no recovery codes. Create some in case you lose your second factor.
            </Notice>
          ) : (
            <p class="quiet">
              {recovery_codes === 1 ? '1 code is' : `${recovery_codes} codes are`} left. Each replaces your
              second factor once.
            </p>
          )}
        </Section>
      )}
      {isLast && <p class="quiet">This vault requires a second factor, so your last one stays.</p>}
      {opened?.kind === 'add' && <AddPasskeyDialog {...props} />}
      {opened?.kind === 'app' && <AppDialog {...props} />}
      {opened?.kind === 'codes' && <RecoveryCodesDialog {...props} />}
      {opened?.kind === 'rename' && <RenamePasskeyDialog passkey={opened.passkey} {...props} />}
      {opened?.kind === 'remove' && (
        <RemoveFactorDialog
          title={`Remove ${opened.passkey.name}?`}
          path={`passkeys/${opened.passkey.id}`}
          text="It no longer signs you in. Delete it from the device or password manager, too."
          {...props}
        />
      )}
      {opened?.kind === 'remove-app' && (
        <RemoveFactorDialog
          title="Remove the authenticator app?"
          path="totp"
          text="Its codes no longer sign you in."
          {...props}
        />
      )}
    </>
  );
}

/** Passkeys belong to the public URL of the vault, and work nowhere else. */
function AddPasskey({ at, onAdd }: { readonly at: string | null; readonly onAdd: () => void }) {
  if (at === null) return <span class="quiet small">Need an https public URL with a domain name</span>;
  if (at !== location.origin)
    return <WebLink to={`${at}/account/sign-in-methods`} label={`Add one at ${at}`} />;
  if (!canUsePasskeys()) return <span class="quiet small">This browser does not support passkeys</span>;
  return (
    <Button look="primary" onClick={onAdd}>
      Add passkey
    </Button>
  );
}
