/** The sign-in form. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { Problem } from '../../components/notice.tsx';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { type Person, setSession } from '../../data/session.ts';
import { OidcRefused, OidcSignIn } from './oidc-sign-in.tsx';
import { Outside } from './outside.tsx';

export function SignInPage() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector('input')?.focus(), []);
  const { run, isBusy, error } = useAction(async () => {
    try {
      // app.tsx then returns to the page that the person asked for.
      setSession(await post<Person>('/session', { name, password }));
    } finally {
      setPassword('');
    }
  });
  return (
    <Outside title="Sign in">
      <div class="stack">
        <OidcRefused />
        <form
          class="stack"
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void run().then((isDone) => {
              if (!isDone) form.current?.querySelector<HTMLInputElement>('input[type=password]')?.focus();
            });
          }}
        >
          <TextField label="Name" name="username" autocomplete="username" value={name} onValue={setName} />
          <TextField
            label="Password"
            type="password"
            name="password"
            autocomplete="current-password"
            value={password}
            onValue={setPassword}
          />
          {error && <Problem error={error} />}
          <Button look="primary" type="submit" isBusy={isBusy} disabled={name === '' || password === ''}>
            Sign in
          </Button>
        </form>
        <OidcSignIn />
      </div>
    </Outside>
  );
}
