/** Badges with a color and a mark. The mark carries the same information for people who cannot see the color. */
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
  ...{ expired: 'bad', not_yet_valid: 'bad', failed: 'bad', revoked: 'bad', gone: 'bad' },
  ...{ failing: 'bad', silent: 'warning', outdated: 'warning', current: 'good' },
  ...{ waiting: 'accent', unreachable: 'bad', unknown: 'bad', untrusted: 'bad' },
};

/** A badge for any status in the API, such as that of a certificate, renewal or key. */
export function Status({
  status,
  tone = tones[status] ?? 'quiet',
}: {
  readonly status: string;
  /** Of a status that means something else here. */
  readonly tone?: BadgeTone;
}) {
  return (
    <Badge tone={tone}>
      <span class={`mark mark-${tone}`} aria-hidden="true" />
      {status.replaceAll('_', ' ')}
    </Badge>
  );
}
