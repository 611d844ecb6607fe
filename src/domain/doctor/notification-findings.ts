/** Whether those who are to be told of trouble can be told: nobody hears of it by the channel that is broken. */

import type { DatabaseContext } from '../contexts.ts';
import { type ChannelView, viewChannels } from '../notifications/notification-views.ts';
import type { Finding } from './finding.ts';

/** A finding for each channel that did not take what it was told last; nothing where there are no channels. */
export async function notificationFindings(vault: DatabaseContext): Promise<Finding[]> {
  const channels = await viewChannels(vault);
  const troubles = channels.flatMap(troubleOf);
  const used = channels.filter(({ disabled_at }) => disabled_at === null).length;
  if (used === 0 || troubles.length > 0) return troubles;
  const message = `${used} ${used === 1 ? 'channel takes' : 'channels take'} what is told`;
  return [{ check: 'notifications', status: 'ok', message }];
}

function troubleOf({
  name,
  disabled_at,
  disabled_reason,
  last_delivery: last,
  waiting,
}: ChannelView): Finding[] {
  const found = { check: 'notification', about: name } as const;
  if (disabled_at !== null) {
    // Without a reason somebody wanted it.
    if (disabled_reason === null) return [];
    const message = `the channel ${name} was disabled: ${disabled_reason}`;
    const hint = `Set it right and let it go on: vault notification update --channel ${name} --secret-file FILE --enable`;
    return [{ ...found, status: 'failed', message, hint }];
  }
  if (last === null || last.error === null) return [];
  const isTaken = last.status === 'delivered';
  const left = waiting > 0 ? `, and ${waiting} ${waiting === 1 ? 'waits' : 'wait'}` : '';
  return [
    {
      ...found,
      status: isTaken ? 'warning' : 'failed',
      message: isTaken
        ? `the channel ${name} took its last message in part: ${last.error}`
        : `the channel ${name} did not take its last message${left}: ${last.error}`,
      hint: `Try it: vault notification test --channel ${name}`,
    },
  ];
}
