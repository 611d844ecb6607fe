/** Channel `pagerduty`: alerts over the Events API v2, resolved when the vault knows that the problem is over. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, serverUrl, token } from './chat-channel.ts';
import { type ChatMessage, cut } from './chat-message.ts';

const config = z.strictObject({
  routing_key: token('must be the integration key: 32 letters and digits', /^[A-Za-z0-9]{32}$/),
  url: serverUrl('https://events.pagerduty.com'),
  ca: trustedCa,
});

/** Sizes that PagerDuty accepts; the text is bounded by us, as 512 kB are allowed. */
const most = { summary: 1024, text: 20_000 };

/** Messages that report a change and must not wake anyone. */
const changes = new Set(['certificate.issued', 'pending_change.created', 'digest']);

/** Not `gathers`: each alarm is an alert of its own, so that its recovery resolves it. */
export const pagerdutyChannel = chatChannel({
  type: 'pagerduty',
  title: 'PagerDuty',
  config,
  plain: 'routing_key',
  keepsAlarms: true,
  request: ({ url, routing_key }, message) => {
    const { event, isRecovery, alarm, id } = message;
    if (changes.has(event)) {
      return { url: `${url}/v2/change/enqueue`, body: { routing_key, ...change(message) } };
    }
    const dedup_key = alarm ?? id;
    const more = isRecovery ? { event_action: 'resolve' } : { event_action: 'trigger', ...alert(message) };
    return { url: `${url}/v2/enqueue`, body: { routing_key, dedup_key, ...more } };
  },
});

function alert(message: ChatMessage): object {
  const { severity, event, certificate, link } = message;
  const { payload, links } = change(message);
  return {
    payload: {
      ...payload,
      ...{ severity, class: event },
      ...(certificate !== undefined && { component: certificate }),
    },
    client: 'Certificate Vault',
    ...(link !== undefined && { client_url: link }),
    links,
  };
}

function change({ title, timestamp, text, link }: ChatMessage) {
  return {
    payload: {
      summary: cut(title, most.summary),
      source: sourceOf(link),
      timestamp,
      custom_details: { text: cut(text, most.text) },
    },
    links: link === undefined ? [] : [{ href: link, text: 'Open the console' }],
  };
}

/** The host of the vault, if it knows its public URL. */
function sourceOf(link: string | undefined): string {
  return link === undefined ? 'certificate-vault' : new URL(link).host;
}
