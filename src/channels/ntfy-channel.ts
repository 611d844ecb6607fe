/** Channel `ntfy`: a push message over ntfy.sh or another ntfy server. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, serverUrl, token } from './chat-channel.ts';
import { byteSize, cut, type Severity } from './chat-message.ts';

const config = z.strictObject({
  topic: z
    .string({ error: 'is missing; it must be the name of the topic' })
    .regex(/^[A-Za-z0-9_-]{1,64}$/, { error: 'must have up to 64 letters, digits, dashes and underscores' }),
  token: token('must be an access token, such as tk_…').optional(),
  url: serverUrl('https://ntfy.sh'),
  ca: trustedCa,
});

/** In bytes. A longer message would arrive as an attachment. */
const most = { title: 250, message: 4096 };

const looks: Readonly<Record<Severity, { readonly priority: number; readonly tags: readonly string[] }>> = {
  critical: { priority: 5, tags: ['rotating_light'] },
  error: { priority: 4, tags: ['x'] },
  warning: { priority: 3, tags: ['warning'] },
  info: { priority: 2, tags: ['information_source'] },
};
const recovered = { priority: 3, tags: ['white_check_mark'] };

export const ntfyChannel = chatChannel({
  type: 'ntfy',
  title: 'ntfy',
  config,
  plain: 'token',
  gathers: true,
  request: ({ url, topic, token: secret }, { isRecovery, severity, title, text, link }) => ({
    // JSON is accepted at the root only.
    url: `${url}/`,
    ...(secret !== undefined && { headers: { Authorization: `Bearer ${secret}` } }),
    body: {
      topic,
      title: cut(title, most.title, { size: byteSize }),
      message: cut(text, most.message, { size: byteSize }),
      ...(isRecovery ? recovered : looks[severity]),
      ...(link !== undefined && { click: link }),
    },
  }),
});
