/** Dialogs by the browser's own element: focus stays inside, Escape closes, and goes back to where it was. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { useAction } from '../resource.ts';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { Problem } from './notice.tsx';

/** Open for as long as it is drawn. `onClose` is called for Escape too. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** A form in a dialog, with a button that does it and one that does not. */
export function FormDialog({
  title,
  action,
  look = 'primary',
  isReady = true,
  onClose,
  onSubmit,
  children,
}: {
  readonly title: string;
  /** What the button says. */
  readonly action: string;
  readonly look?: 'primary' | 'danger';
  readonly isReady?: boolean;
  readonly onClose: () => void;
  /** The dialog closes after it, unless it throws. */
  readonly onSubmit: () => Promise<unknown>;
  /** Gets what is wrong with a field by its path. */
  readonly children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
}) {
  const { run, isBusy, error } = useAction(onSubmit);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!isReady) return;
          void run().then((isDone) => isDone && onClose());
        }}
      >
        {children((field) => error?.field(field))}
        {error && <Problem error={error} />}
        <div class="dialog-buttons">
          <Button look="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button look={look} type="submit" isBusy={isBusy} disabled={!isReady}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** Asks before something that cannot be taken back; with `word`, only for whoever types it. */
export function ConfirmDialog({
  word,
  children,
  ...rest
}: {
  readonly title: string;
  readonly action: string;
  readonly word?: string;
  readonly onClose: () => void;
  readonly onSubmit: () => Promise<unknown>;
  readonly children: ComponentChildren;
}) {
  const [typed, setTyped] = useState('');
  return (
    <FormDialog {...rest} look="danger" isReady={word === undefined || typed === word}>
      {() => (
        <>
          <div class="prose">{children}</div>
          {word !== undefined && (
            <TextField label={`Type ${word} to confirm`} value={typed} onValue={setTyped} />
          )}
        </>
      )}
    </FormDialog>
  );
}
