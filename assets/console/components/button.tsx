/** Buttons, and links that look like buttons. */
import type { ComponentChildren, JSX } from 'preact';

export type Look = 'primary' | 'plain' | 'quiet' | 'danger';

type ButtonProps = Omit<JSX.IntrinsicElements['button'], 'type' | 'class'> & {
  readonly look?: Look;
  readonly type?: 'button' | 'submit';
  /** The action is running: the button shows a spinner and ignores clicks. */
  readonly isBusy?: boolean;
};

export function Button({ look = 'plain', type = 'button', isBusy = false, children, ...rest }: ButtonProps) {
  const busy = isBusy ? { 'aria-disabled': true, 'aria-busy': true } : {};
  return (
    <button
      {...rest}
      {...busy}
      type={type}
      class={`button button-${look}`}
      onClick={isBusy ? (event) => event.preventDefault() : rest.onClick}
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
  children,
}: {
  readonly look?: Look;
  readonly href: string;
  readonly download?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <a class={`button button-${look}`} href={href} {...(download && { download: '' })}>
      {children}
    </a>
  );
}
