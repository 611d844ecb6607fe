/** Dialogs for second factors. Each asks for the password, so that a stolen session cannot change how one signs in. */
import { useRef, useState } from 'preact/hooks';
import { Button } from '../../components/button.tsx';
import { CopyBlock } from '../../components/copy.tsx';
import { Dialog, FormDialog } from '../../components/dialog.tsx';
import { TextField } from '../../components/field.tsx';
import { QrCode } from '../../components/qr-code.tsx';
import type { Passkey } from '../../data/administration-shapes.ts';
import { patch, post, put } from '../../data/api.ts';
import { registerPasskey } from '../../data/passkeys.ts';

export type DialogProps = { readonly onClose: () => void; readonly onDone: () => Promise<void> };

/** A form closes when it is done; `next` before that keeps the next step open. */
function useSteps(onClose: () => void) {
  const hasNext = useRef(false);
  return {
    next: () => {
      hasNext.current = true;
    },
    close: () => {
      if (hasNext.current) hasNext.current = false;
      else onClose();
    },
  };
}

function PasswordField({
  value,
  onValue,
  error,
}: {
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly error: string | undefined;
}) {
  return (
    <TextField
      label="Your password"
      type="password"
      autocomplete="current-password"
      value={value}
      onValue={onValue}
      error={error}
    />
  );
}

export function AddPasskeyDialog({ onClose, onDone }: DialogProps) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  return (
    <FormDialog
      title="Add a passkey"
      action="Continue"
      isReady={name.trim() !== '' && password !== ''}
      onClose={onClose}
      onSubmit={async () => {
        await registerPasskey(name, password);
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <div class="prose">
            <p>
              Your browser then asks where to keep the passkey: on this device, on a phone or on a security
              key.
            </p>
          </div>
          <TextField
            label="Name"
            hint="To tell it from others later, such as “Laptop” or “Security key”."
            value={name}
            onValue={setName}
            error={errorOf('name')}
          />
          <PasswordField value={password} onValue={setPassword} error={errorOf('password')} />
        </>
      )}
    </FormDialog>
  );
}

export function RenamePasskeyDialog({
  passkey,
  onClose,
  onDone,
}: DialogProps & { readonly passkey: Passkey }) {
  const [name, setName] = useState(passkey.name);
  return (
    <FormDialog
      title={`Rename ${passkey.name}`}
      action="Rename"
      isReady={name.trim() !== ''}
      onClose={onClose}
      onSubmit={async () => {
        await patch(`/second-factors/passkeys/${passkey.id}`, { name });
        await onDone();
      }}
    >
      {(errorOf) => <TextField label="Name" value={name} onValue={setName} error={errorOf('name')} />}
    </FormDialog>
  );
}

/** Removes what `path` names. */
export function RemoveFactorDialog({
  title,
  path,
  text,
  onClose,
  onDone,
}: DialogProps & { readonly title: string; readonly path: string; readonly text: string }) {
  const [password, setPassword] = useState('');
  return (
    <FormDialog
      title={title}
      action="Remove"
      look="danger"
      isReady={password !== ''}
      onClose={onClose}
      onSubmit={async () => {
        await post(`/second-factors/${path}/remove`, { password });
        await onDone();
      }}
    >
      {(errorOf) => (
        <>
          <div class="prose">
            <p>{text}</p>
          </div>
          <PasswordField value={password} onValue={setPassword} error={errorOf('password')} />
        </>
      )}
    </FormDialog>
  );
}

type NewApp = { readonly pending: string; readonly secret: string; readonly uri: string };

type Codes = { readonly recovery_codes: readonly string[] };

/** Password, then QR code and first code, then recovery codes. */
export function AppDialog({ onClose, onDone }: DialogProps) {
  const [password, setPassword] = useState('');
  const steps = useSteps(onClose);
  const [app, setApp] = useState<NewApp>();
  const [code, setCode] = useState('');
  const [codes, setCodes] = useState<readonly string[]>();
  if (codes !== undefined) return <CodesDialog codes={codes} onClose={onClose} onDone={onDone} />;
  if (app === undefined) {
    return (
      <FormDialog
        key="password"
        title="Set up an authenticator app"
        action="Continue"
        isReady={password !== ''}
        onClose={steps.close}
        onSubmit={async () => {
          setApp(await post<NewApp>('/second-factors/totp', { password }));
          steps.next();
        }}
      >
        {(errorOf) => (
          <>
            <div class="prose">
              <p>
                An app on your phone, such as Aegis, 2FAS, Google Authenticator or a password manager, shows a
                new code every 30 seconds.
              </p>
            </div>
            <PasswordField value={password} onValue={setPassword} error={errorOf('password')} />
          </>
        )}
      </FormDialog>
    );
  }
  return (
    <FormDialog
      key="code"
      title="Set up an authenticator app"
      action="Set up"
      isReady={code.trim() !== ''}
      onClose={steps.close}
      onSubmit={async () => {
        const body = { pending: app.pending, code };
        setCodes((await put<Codes>('/second-factors/totp', body)).recovery_codes);
        steps.next();
      }}
    >
      {(errorOf) => (
        <>
          <div class="prose">
            <p>Scan the QR code with the app, and type the code that the app shows.</p>
          </div>
          <QrCode text={app.uri} label="QR code for the authenticator app" />
          <TextField
            label="Code"
            hint="Six digits."
            autocomplete="one-time-code"
            value={code}
            onValue={setCode}
            error={errorOf('code')}
          />
          <p class="quiet small">Without a camera, type this secret into the app:</p>
          <CopyBlock text={app.secret.replaceAll(/(.{4})(?=.)/g, '$1 ')} label="Secret" />
        </>
      )}
    </FormDialog>
  );
}

export function RecoveryCodesDialog({ onClose, onDone }: DialogProps) {
  const [password, setPassword] = useState('');
  const steps = useSteps(onClose);
  const [codes, setCodes] = useState<readonly string[]>();
  if (codes !== undefined) return <CodesDialog codes={codes} onClose={onClose} onDone={onDone} />;
  return (
    <FormDialog
      title="Create new recovery codes?"
      action="Create codes"
      isReady={password !== ''}
      onClose={steps.close}
      onSubmit={async () => {
        setCodes((await post<Codes>('/second-factors/recovery-codes', { password })).recovery_codes);
        steps.next();
      }}
    >
      {(errorOf) => (
        <>
          <div class="prose">
            <p>Your earlier recovery codes stop working.</p>
          </div>
          <PasswordField value={password} onValue={setPassword} error={errorOf('password')} />
        </>
      )}
    </FormDialog>
  );
}

function CodesDialog({ codes, onClose, onDone }: DialogProps & { readonly codes: readonly string[] }) {
  const close = () => {
    onClose();
    void onDone();
  };
  return (
    <Dialog title="Your recovery codes" onClose={close}>
      <div class="prose">
        <p>
          Each code signs you in once if you have lost your second factor. Keep them apart from your password.
          They are shown only once.
        </p>
      </div>
      <CopyBlock text={codes.join('\n')} label="Recovery codes" />
      <div class="dialog-buttons">
        <Button look="primary" onClick={close}>
          I have saved the codes
        </Button>
      </div>
    </Dialog>
  );
}
