/** The first administrator, by the link that the vault printed at its start. */
import { useState } from 'preact/hooks';
import { post } from '../api.ts';
import { Button, ButtonLink } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { isSure, NewPasswordFields, noPassword } from '../forms/new-password.tsx';
import { useAction } from '../resource.ts';
import { navigate } from '../router.ts';
import { type Person, setSession } from '../session.ts';
import { Outside } from './outside.tsx';

/** Read once, and taken out of the address bar at once: whoever looks over a shoulder, or at the history, finds nothing. */
const token = takeToken();

function takeToken(): string | null {
  if (location.pathname !== '/setup') return null;
  const found = new URLSearchParams(location.hash.slice(1)).get('token');
  if (location.hash !== '') history.replaceState(null, '', location.pathname);
  return found;
}

export function SetupPage() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState(noPassword);
  const { run, isBusy, error } = useAction(async () => {
    setSession(await post<Person>('/setup', { token, name, password: password.first }));
    navigate('/', 'replace');
  });
  if (token === null) {
    return (
      <Outside title="Set up the vault">
        <Notice title="The setup link is needed" actions={<ButtonLink href="/sign-in">Sign in</ButtonLink>}>
          <p>
            Create one on the vault's host with <code>vault admin setup-link</code>. It is valid once, for 24
            hours.
          </p>
        </Notice>
      </Outside>
    );
  }
  return (
    <Outside title="Set up the vault" lead="You become the first administrator. Others can be added later.">
      <form
        class="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (isSure(password)) void run();
        }}
      >
        <TextField
          label="Name"
          name="username"
          autocomplete="username"
          value={name}
          onValue={setName}
          error={error?.field('name')}
        />
        <NewPasswordFields
          label="Password"
          value={password}
          onValue={setPassword}
          error={error?.field('password')}
        />
        {error && Object.keys(error.fields).length === 0 && <Problem error={error} />}
        <Button look="primary" type="submit" isBusy={isBusy} disabled={name === '' || !isSure(password)}>
          Set up
        </Button>
      </form>
    </Outside>
  );
}
