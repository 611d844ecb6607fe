/** The frame of the two pages that nobody has to be signed in for. */
import type { ComponentChildren } from 'preact';
import { Page } from '../components/page.tsx';
import { Shield } from '../shell.tsx';

export function Outside({
  title,
  lead,
  children,
}: {
  readonly title: string;
  readonly lead?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <main class="outside">
      <div class="outside-brand">
        <Shield /> Certificate Vault
      </div>
      <div class="card">
        <Page title={title} {...(lead !== undefined && { lead })}>
          {children}
        </Page>
      </div>
    </main>
  );
}
