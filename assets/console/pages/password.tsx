/** A new password for oneself; it ends one's other sessions. */
import { useState } from 'preact/hooks';
import { put } from '../api.ts';
import { Button } from '../components/button.tsx';
import { TextField } from '../components/field.tsx';
import { Notice, Problem } from '../components/notice.tsx';
import { Page } from '../components/page.tsx';
import { isSure, NewPasswordFields, noPassword } from '../forms/new-password.tsx';
import { useAction } from '../resource.ts';

export function PasswordPage() {
  const [current, setCurrent] = useState('');
  const [next, setNext] = useState(noPassword);
  const [isChanged, setChanged] = useState(false);
  const { run, isBusy, error } = useAction(async () => {
    await put('/session/password', { current, new: next.first });
    setCurrent('');
    setNext(noPassword);
    setChanged(true);
  });
  return (
    <Page title="Change password" lead="Your other sessions end with it.">
      <form
        class="stack narrow"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          setChanged(false);
          if (isSure(next)) void run();
        }}
      >
        <TextField
          label="Current password"
          type="password"
          autocomplete="current-password"
          value={current}
          onValue={setCurrent}
          error={error?.field('current')}
        />
        <NewPasswordFields label="New password" value={next} onValue={setNext} error={error?.field('new')} />
        {error && Object.keys(error.fields).length === 0 && <Problem error={error} />}
        {isChanged && <Notice tone="good">The password is changed.</Notice>}
        <div>
          <Button look="primary" type="submit" isBusy={isBusy} disabled={current === '' || !isSure(next)}>
            Change password
          </Button>
        </div>
      </form>
    </Page>
  );
}
