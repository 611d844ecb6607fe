/** Channel `opsgenie`: alerts over the Alert API, closed when the vault knows that the problem is over. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, serverUrl, token } from './chat-channel.ts';
import { cut, type Severity } from './chat-message.ts';

const config = z.strictObject({
  api_key: token('must be the key of an API integration'),
  url: serverUrl('https://api.opsgenie.com'),
  ca: trustedCa,
});

/** Sizes that Opsgenie accepts. */
const most = { message: 130, description: 15_000, note: 25_000 };

const priorities: Readonly<Record<Severity, string>> = {
  critical: 'P1',
  error: 'P2',
  warning: 'P3',
  info: 'P5',
};

const source = 'Certificate Vault';

/** Not `gathers`: each alarm is an alert of its own, so that its recovery closes it. */
export const opsgenieChannel = chatChannel({
  type: 'opsgenie',
  title: 'Opsgenie',
  config,
  plain: 'api_key',
  keepsAlarms: true,
  request: ({ url, api_key }, { id, event, severity, isRecovery, alarm, title, text, certificate, link }) => {
    const alias = alarm ?? id;
    const headers = { Authorization: `GenieKey ${api_key}` };
    if (isRecovery) {
      return {
        url: `${url}/v2/alerts/${encodeURIComponent(alias)}/close?identifierType=alias`,
        headers,
        body: { source, note: cut(title, most.note) },
      };
    }
    return {
      url: `${url}/v2/alerts`,
      headers,
      body: {
        message: cut(title, most.message),
        alias,
        description: cut(text, most.description),
        priority: priorities[severity],
        source,
        tags: [event],
        ...(certificate !== undefined && { entity: certificate }),
        details: {
          event,
          ...(certificate !== undefined && { certificate }),
          ...(link !== undefined && { console: link }),
        },
      },
    };
  },
});
