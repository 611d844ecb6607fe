/** Channel `telegram`: a message of a bot to a chat, group or channel of Telegram. */
import { z } from 'zod';
import { trustedCa } from '../net/trusted-ca.ts';
import { chatChannel, serverUrl, token } from './chat-channel.ts';
import { type ChatMessage, cut } from './chat-message.ts';

const config = z.strictObject({
  token: token('must be the token of the bot, such as 123456:ABC…', /^\d{1,20}:[A-Za-z0-9_-]{1,100}$/),
  chat: z
    .string({ error: 'is missing; it must be the id of the chat, such as -1001234567890, or @channel' })
    .regex(/^(-?\d{1,20}|@[A-Za-z0-9_]{1,64})$/, {
      error: 'must be the id of the chat, such as -1001234567890, or @channel',
    }),
  thread: z.int().min(1).optional(),
  url: serverUrl('https://api.telegram.org'),
  ca: trustedCa,
});

/** Telegram accepts 4096 characters after parsing; ours are counted before it, so they are never too many. */
const most = { title: 500, all: 4096 };

const entities: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
const encode = (character: string): string => entities[character] ?? character;

export const telegramChannel = chatChannel({
  type: 'telegram',
  title: 'Telegram',
  config,
  plain: 'token',
  gathers: true,
  request: ({ url, token: bot, chat, thread }, message) => ({
    url: `${url}/bot${bot}/sendMessage`,
    body: {
      chat_id: chat,
      ...(thread !== undefined && { message_thread_id: thread }),
      text: html(message),
      parse_mode: 'HTML',
      link_preview_options: { is_disabled: true },
    },
  }),
});

function html({ label, title, text, link }: ChatMessage): string {
  const head = `<b>${label}: ${cut(title, most.title, { encode })}</b>\n<pre>`;
  const foot =
    link === undefined ? '</pre>' : `</pre>\n<a href="${cut(link, 1000, { encode })}">Open the console</a>`;
  return `${head}${cut(text, most.all - head.length - foot.length, { encode })}${foot}`;
}
