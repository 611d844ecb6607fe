/** Small words with a colour and a mark: the mark says the same to those who do not see the colour. */
import type { ComponentChildren } from 'preact';

export type BadgeTone = 'good' | 'warning' | 'bad' | 'quiet' | 'accent';

export function Badge({
  tone = 'quiet',
  children,
}: {
  readonly tone?: BadgeTone;
  readonly children: ComponentChildren;
}) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

const tones: Readonly<Record<string, BadgeTone>> = {
  ...{ valid: 'good', active: 'good', succeeded: 'good', delivered: 'good', ready: 'good', ok: 'good' },
  ...{ expiring: 'warning', queued: 'accent', running: 'accent', sending: 'accent', registering: 'accent' },
  ...{ expired: 'bad', failed: 'bad', revoked: 'bad', gone: 'bad' },
};

/** Any status word of the API: of certificates, renewals, keys, accounts. */
export function Status({ status }: { readonly status: string }) {
  return (
    <Badge tone={tones[status] ?? 'quiet'}>
      <span class={`mark mark-${tones[status] ?? 'quiet'}`} aria-hidden="true" />
      {status.replaceAll('_', ' ')}
    </Badge>
  );
}
