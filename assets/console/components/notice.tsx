/** Message boxes: information, success, warnings and errors. */
import type { ComponentChildren } from 'preact';
import type { ApiError } from '../data/api.ts';
import { Button, ButtonLink } from './button.tsx';

export type Tone = 'info' | 'good' | 'warning' | 'bad';

export function Notice({
  tone = 'info',
  title,
  children,
  actions,
}: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <div class={`notice notice-${tone}`} role={tone === 'bad' ? 'alert' : 'status'}>
      {title && <p class="notice-title">{title}</p>}
      {children && <div class="notice-text">{children}</div>}
      {actions && <div class="notice-actions">{actions}</div>}
    </div>
  );
}

/** An error from the vault, with a retry button if `retry` is given. */
export function Problem({
  error,
  retry,
  actions,
}: {
  readonly error: ApiError;
  readonly retry?: () => unknown;
  readonly actions?: ComponentChildren;
}) {
  const listed = Object.entries(error.fields).filter(([, message]) => !error.message.includes(message));
  if (error.code === 'approval_required') {
    return (
      <Notice tone="warning" actions={<ButtonLink href="/approvals">View approvals</ButtonLink>}>
        <p>{error.message}</p>
      </Notice>
    );
  }
  return (
    <Notice
      tone="bad"
      actions={
        (retry || actions) && (
          <>
            {retry && <Button onClick={() => void retry()}>Retry</Button>}
            {actions}
          </>
        )
      }
    >
      <p>{error.message}</p>
      {listed.length > 0 && (
        <ul>
          {listed.map(([path, message]) => (
            <li key={path}>{message}</li>
          ))}
        </ul>
      )}
      {error.retryAfter !== undefined && <p>Retry in {waitText(error.retryAfter)}.</p>}
    </Notice>
  );
}

function waitText(seconds: number): string {
  return seconds < 90 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}
