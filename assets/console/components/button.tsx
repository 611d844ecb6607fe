/** Buttons, and links that look like buttons. */
import type { ComponentChildren, JSX } from 'preact';
import { type Need, useRefusal } from '../data/session.ts';

export type Look = 'primary' | 'plain' | 'quiet' | 'danger';

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'type' | 'class'> & {
  readonly look?: Look;
  readonly type?: 'button' | 'submit';
  /** The action is running: the button shows a spinner and ignores clicks. */
  readonly isBusy?: boolean;
  /** What the action needs: the button says so to those who do not have it, and ignores their clicks. */
  readonly needs?: Need;
  /** Another reason that makes the button ignore clicks. */
  readonly refusal?: string;
};

export function Button({
  look = 'plain',
  type = 'button',
  isBusy = false,
  needs,
  refusal: other,
  children,
  ...rest
}: ButtonProps) {
  const refusal = useRefusal(needs) ?? other;
  const busy = isBusy ? { 'aria-disabled': true, 'aria-busy': true } : {};
  const refused =
    refusal === undefined ? {} : { 'aria-disabled': true, 'aria-description': refusal, title: refusal };
  return (
    <button
      {...rest}
      {...busy}
      {...refused}
      type={type}
      class={`button button-${look}`}
      onClick={isBusy || refusal !== undefined ? (event) => event.preventDefault() : rest.onClick}
    >
      {isBusy && <span class="spinner" aria-hidden="true" />}
      {children}
    </button>
  );
}

/** A link to a page or, with `download`, to a file. */
export function ButtonLink({
  look = 'plain',
  href,
  download,
  needs,
  children,
}: {
  readonly look?: Look;
  readonly href: string;
  readonly download?: boolean;
  /** As of a button. */
  readonly needs?: Need;
  readonly children: ComponentChildren;
}) {
  const refusal = useRefusal(needs);
  if (refusal !== undefined) {
    return (
      <Button look={look} refusal={refusal}>
        {children}
      </Button>
    );
  }
  return (
    <a class={`button button-${look}`} href={href} {...(download && { download: '' })}>
      {children}
    </a>
  );
}
