/** Boxes that say something about the page: good news, a warning, or a problem with a way on. */
import type { ComponentChildren } from 'preact';
import type { ApiError } from '../api.ts';
import { Button } from './button.tsx';

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

/** What the vault said, and what can be done about it: try again where `retry` is given, or what `actions` holds. */
export function Problem({
  error,
  retry,
  actions,
}: {
  readonly error: ApiError;
  readonly retry?: () => unknown;
  readonly actions?: ComponentChildren;
}) {
  const listed = Object.entries(error.fields);
  return (
    <Notice
      tone="bad"
      actions={
        (retry || actions) && (
          <>
            {retry && <Button onClick={() => void retry()}>Try again</Button>}
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
      {error.retryAfter !== undefined && <p>Try again in {waitText(error.retryAfter)}.</p>}
    </Notice>
  );
}

function waitText(seconds: number): string {
  return seconds < 90 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`;
}
