/** Creates the first administrator from the setup link that the vault printed when it started. */
import { useState } from 'preact/hooks';
import { Button, ButtonLink } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { useFormErrors } from '../../components/form-errors.tsx';
import { Notice } from '../../components/notice.tsx';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { type Person, setSession } from '../../data/session.ts';
import { emptyPassword, isConfirmed, NewPasswordFields } from '../../forms/new-password.tsx';
import { navigate } from '../../router.ts';
import { Outside } from './outside.tsx';

/** Read once and removed from the address bar, so that the token stays out of the browser history. */
const token = takeToken();

function takeToken(): string | null {
  if (location.pathname !== '/setup') return null;
  const value = new URLSearchParams(location.hash.slice(1)).get('token');
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  return value;
}

export function SetupPage() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState(emptyPassword);
  const { run, isBusy, error } = useAction(async () => {
    setSession(await post<Person>('/setup', { token, name, password: password.first }));
    navigate('/', 'replace');
  });
  const { form, errorOf, rest } = useFormErrors(error);
  if (token === null) {
    return (
      <Outside title="Set up the vault">
        <Notice title="Setup link required" actions={<ButtonLink href="/sign-in">Sign in</ButtonLink>}>
          <p>
            Create one on the vault’s host with <code>vault admin setup-link</code>. The link works once and
            expires after 24 hours.
          </p>
        </Notice>
      </Outside>
    );
  }
  return (
    <Outside title="Set up the vault" lead="Create the first administrator. You can add others later.">
      <form
        ref={form}
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isConfirmed(password)) void run();
        }}
      >
        <TextField
          label="Name"
          name="username"
          autocomplete="username"
          value={name}
          onValue={setName}
          error={errorOf('name')}
        />
        <NewPasswordFields
          label="Password"
          value={password}
          onValue={setPassword}
          error={errorOf('password')}
        />
        {rest}
        <Button look="primary" type="submit" isBusy={isBusy} disabled={name === '' || !isConfirmed(password)}>
          Set up
        </Button>
      </form>
    </Outside>
  );
}
