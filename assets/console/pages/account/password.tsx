/** Changes the person's own password, which ends their other sessions. */
import { useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { useFormErrors } from '../../components/form-errors.tsx';
import { Notice } from '../../components/notice.tsx';
import { Page } from '../../components/page.tsx';
import { put } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { useSession } from '../../data/session.ts';
import { emptyPassword, isConfirmed, NewPasswordFields } from '../../forms/new-password.tsx';

export function PasswordPage() {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState(emptyPassword);
  const [isChanged, setChanged] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    await put('/session/password', { current, new: next.first });
    setCurrent('');
    setNext(emptyPassword);
    setChanged(true);
  });
  const { form, errorOf, rest } = useFormErrors(error);
  if (useSession()?.sign_in === 'oidc') {
    return (
      <Page title="Change password">
        <p>You sign in by OpenID Connect. Change your password at the identity provider.</p>
      </Page>
    );
  }
  return (
    <Page title="Change password" lead="Changing your password signs you out of your other sessions.">
      <form
        ref={form}
        class="stack narrow"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setChanged(false);
          if (isConfirmed(next)) void run();
        }}
      >
        <TextField
          label="Current password"
          type="password"
          autocomplete="current-password"
          value={current}
          onValue={setCurrent}
          error={errorOf('current')}
        />
        <NewPasswordFields label="New password" value={next} onValue={setNext} error={errorOf('new')} />
        {rest}
        {isChanged && <Notice tone="good">Password changed.</Notice>}
        <div>
          <Button
            look="primary"
            type="submit"
            isBusy={isBusy}
            disabled={current === '' || !isConfirmed(next)}
          >
            Change password
          </Button>
        </div>
      </form>
    </Page>
  );
}
