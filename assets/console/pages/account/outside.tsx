/** The frame of the sign-in and setup pages, which need no session. */
import type { ComponentChildren } from 'preact';
import { Page } from '../../components/page.tsx';
import { Shield } from '../../shell.tsx';

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
