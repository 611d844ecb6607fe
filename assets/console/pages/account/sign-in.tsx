/** The sign-in form. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { Notice, Problem } from '../../components/notice.tsx';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { type Person, setSession } from '../../data/session.ts';
import { OidcRefused } from './oidc-sign-in.tsx';
import { OtherSignIns, useSignInMethods } from './other-sign-ins.tsx';
import { Outside } from './outside.tsx';
import { type NextStep, SecondStep } from './second-step.tsx';

export function SignInPage() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [next, setNext] = useState<NextStep>();
  const methods = useSignInMethods();
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector('input')?.focus(), [next]);
  const { run, isBusy, error } = useAction(async () => {
    try {
      const answer = await post<Person | NextStep>('/session', { name, password });
      // app.tsx then returns to the page that the person asked for.
      if ('methods' in answer) setNext(answer);
      else setSession(answer);
    } finally {
      setPassword('');
    }
  });
  if (next !== undefined) return <SecondStep next={next} onBack={() => setNext(undefined)} />;
  return (
    <Outside title="Sign in">
      <div class="stack">
        <OidcRefused />
        {methods?.setup_needed && (
          <Notice title="No administrator yet">
            <p>
              Open the setup link. <code>vault admin setup-link</code> creates one on the vault’s host.
            </p>
          </Notice>
        )}
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
        {methods && <OtherSignIns methods={methods} />}
      </div>
    </Outside>
  );
}
