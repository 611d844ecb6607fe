/** Dialogs, with the browser's dialog element: focus stays inside, Escape closes, and focus returns afterwards. */
import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useAction } from '../data/resource.ts';
import { Button } from './button.tsx';
import { TextField } from './field.tsx';
import { useFormErrors } from './form-errors.tsx';

/** Open while it is rendered. Escape calls `onClose` too. */
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
  // Before the next key: it would move the focus that returns afterwards.
  useLayoutEffect(() => {
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

/** A form in a dialog, with a button for the action and one to cancel. */
export function FormDialog({
  title,
  action,
  dismiss = 'Cancel',
  look = 'primary',
  isReady = true,
  onClose,
  onSubmit,
  children,
}: {
  readonly title: string;
  /** The label of the button. */
  readonly action: string;
  /** The label of the button that closes the dialog. */
  readonly dismiss?: string;
  readonly look?: 'primary' | 'danger';
  readonly isReady?: boolean;
  readonly onClose: () => void;
  /** The dialog closes when this resolves. */
  readonly onSubmit: () => Promise<unknown>;
  /** Receives a function that returns the error of a field by its path. */
  readonly children: (errorOf: (field: string) => string | undefined) => ComponentChildren;
}) {
  const { run, isBusy, error } = useAction(onSubmit);
  const { form, errorOf, rest } = useFormErrors(error);
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        ref={form}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          if (!isReady) return;
          void run().then((isDone) => isDone && onClose());
        }}
      >
        {children(errorOf)}
        <div class="dialog-foot">
          {rest}
          <div class="dialog-buttons">
            <Button look="quiet" onClick={onClose}>
              {dismiss}
            </Button>
            <Button look={look} type="submit" isBusy={isBusy} disabled={!isReady}>
              {action}
            </Button>
          </div>
        </div>
      </form>
    </Dialog>
  );
}

/** Confirms an action that cannot be undone. With `word`, the person must type that word first. */
export function ConfirmDialog({
  word,
  children,
  ...rest
}: {
  readonly title: string;
  readonly action: string;
  readonly dismiss?: string;
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
