/** Findings about notification channels: a broken channel cannot report that it is broken. */

import type { DatabaseContext } from '../contexts.ts';
import { type ChannelView, viewChannels } from '../notifications/notification-views.ts';
import type { Finding } from './finding.ts';

/** One finding per channel whose last delivery failed, or one that all channels work; none if there are no channels. */
export async function notificationFindings(vault: DatabaseContext): Promise<Finding[]> {
  const channels = await viewChannels(vault);
  const problems = channels.flatMap(problemsOf);
  const used = channels.filter(({ disabled_at }) => disabled_at === null).length;
  if (used === 0 || problems.length > 0) return problems;
  const message = `${used} ${used === 1 ? 'channel works' : 'channels work'}`;
  return [{ check: 'notifications', status: 'ok', message }];
}

function problemsOf({
  name,
  disabled_at,
  disabled_reason,
  last_delivery: last,
  waiting,
}: ChannelView): Finding[] {
  const found = { check: 'notification', about: name } as const;
  if (disabled_at !== null) {
    // Without a reason, an administrator disabled the channel.
    if (disabled_reason === null) return [];
    const message = `channel ${name} was disabled: ${disabled_reason}`;
    const hint = `Correct its settings and enable it.\nFix: vault notification update --channel ${name} --secret-file FILE --enable`;
    return [{ ...found, status: 'failed', message, hint }];
  }
  if (last === null || last.error === null) return [];
  const isDelivered = last.status === 'delivered';
  const left = waiting > 0 ? ` (${waiting} pending)` : '';
  return [
    {
      ...found,
      status: isDelivered ? 'warning' : 'failed',
      message: isDelivered
        ? `channel ${name} delivered its last message only in part: ${last.error}`
        : `channel ${name} failed to deliver its last message${left}: ${last.error}`,
      hint: `Try: vault notification test --channel ${name}`,
    },
  ];
}
