/** The empty state of a list: what it will show, and how to create the first item. */
import type { ComponentChildren } from 'preact';

export function Empty({
  title,
  children,
  actions,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children && <div class="prose">{children}</div>}
      {actions && <div class="empty-actions">{actions}</div>}
    </div>
  );
}
