/** The second step of a sign-in with a password: a code, or a passkey. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { TextField } from '../../components/field.tsx';
import { Problem } from '../../components/notice.tsx';
import { post } from '../../data/api.ts';
import { useAction } from '../../data/resource.ts';
import { type Person, setSession } from '../../data/session.ts';
import { PasskeyButton } from './other-sign-ins.tsx';
import { Outside } from './outside.tsx';

export type NextStep = {
  readonly methods: readonly ('totp' | 'recovery_code' | 'passkey')[];
  readonly expires_at: string;
};

const hints = {
  both: 'Six digits from your authenticator app, or one of your recovery codes.',
  totp: 'Six digits from your authenticator app.',
  recovery_code: 'One of your recovery codes; each works once.',
};

export function SecondStep({ next, onBack }: { readonly next: NextStep; readonly onBack: () => void }) {
  const [code, setCode] = useState('');
  const form = useRef<HTMLFormElement>(null);
  // After the heading of the page, which takes the focus, too.
  useEffect(() => queueMicrotask(() => form.current?.querySelector('input')?.focus()), []);
  const { run, isBusy, error } = useAction(async () => {
    try {
      setSession(await post<Person>('/session/second-step', { code }));
    } finally {
      setCode('');
    }
  });
  const { methods } = next;
  const hasPasskey = methods.includes('passkey');
  const hint = methods.includes('totp')
    ? methods.includes('recovery_code')
      ? hints.both
      : hints.totp
    : methods.includes('recovery_code')
      ? hints.recovery_code
      : undefined;
  return (
    <Outside
      title="Confirm that it is you"
      lead="Your password is correct. This account has a second factor."
    >
      <div class="stack">
        {hasPasskey && <PasskeyButton look="primary" />}
        {hint !== undefined && (
          <form
            class="stack"
            ref={form}
            noValidate
            onSubmit={(event) => {
              event.preventDefault();
              void run().then((isDone) => {
                if (!isDone) form.current?.querySelector('input')?.focus();
              });
            }}
          >
            <TextField
              label="Code"
              name="code"
              autocomplete="one-time-code"
              hint={hint}
              value={code}
              onValue={setCode}
            />
            {error && <Problem error={error} />}
            <Button
              look={hasPasskey ? 'plain' : 'primary'}
              type="submit"
              isBusy={isBusy}
              disabled={code.trim() === ''}
            >
              Sign in
            </Button>
          </form>
        )}
        <Button look="quiet" onClick={onBack}>
          Back
        </Button>
      </div>
    </Outside>
  );
}
