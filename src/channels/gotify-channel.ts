/** Channel `gotify`: a push message over a Gotify server. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, serverUrl, token } from './chat-channel.ts';
import { cut, type Severity } from './chat-message.ts';

const config = z.strictObject({
  url: serverUrl(),
  token: token('must be the token of an application in Gotify'),
  ca: trustedCa,
});

/** Gotify has no limit; this much fits a phone. */
const most = { title: 250, message: 10_000 };

const priorities: Readonly<Record<Severity, number>> = { critical: 10, error: 8, warning: 5, info: 2 };

export const gotifyChannel = chatChannel({
  type: 'gotify',
  title: 'Gotify',
  config,
  plain: 'token',
  gathers: true,
  request: ({ url, token: secret }, { isRecovery, severity, title, text, link }) => ({
    url: `${url}/message`,
    headers: { 'X-Gotify-Key': secret },
    body: {
      title: cut(title, most.title),
      message: cut(text, most.message),
      priority: isRecovery ? priorities.warning : priorities[severity],
      extras: {
        'client::display': { contentType: 'text/plain' },
        ...(link !== undefined && { 'client::notification': { click: { url: link } } }),
      },
    },
  }),
});
